package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"sluice/config"
	"sluice/gateway"
	"sluice/internal/cli"
)

type runOptions struct {
	config, from, to, mode string
	takeOver               bool
}

func newRun() *cobra.Command {
	o := runOptions{config: "config.toml"}
	cmd := &cobra.Command{
		Use: "run", Short: "Run the gateway.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (o.from == "") != (o.to == "") {
				return cli.Misuse(cmd, errors.New("--from and --to go together: where shoppers come in, and where the shop is"))
			}
			return o.run()
		},
	}
	cli.ConfigFlag(cmd, cmd.Flags(), &o.config, "configuration `file`")
	cmd.Flags().StringVar(&o.from, "from", "", "without a file: listen at this `address`, such as :8080")
	cmd.Flags().StringVar(&o.to, "to", "", "without a file: forward to the shop at this `URL`, within the default limits")
	cmd.Flags().BoolVar(&o.takeOver, "take-over", false,
		"share the addresses of a running gateway and take new connections; then stop that one with SIGTERM")
	cli.ChoiceFlag(cmd, cmd.Flags(), &o.mode, "mode", "overrides mode of the file", "enforce", "observe")
	return cmd
}

func (o *runOptions) run() error {
	c, err := o.load()
	if err != nil {
		return err
	}
	log := gateway.NewLog(c.Log, os.Stderr)
	slog.SetDefault(log)
	run := gateway.RunOptions{Options: gateway.Options{Version: version}, TakeOver: o.takeOver, ModeSet: o.mode != ""}
	if o.from == "" {
		run.Load = o.load
	}
	return gateway.Run(c, run, log)
}

// load reads the configuration: from its file, or from --from and --to.
func (o *runOptions) load() (*config.Config, error) {
	if o.from == "" {
		return config.Load(o.config, os.LookupEnv, gateway.Validate, o.setMode)
	}
	text := fmt.Sprintf("[server]\nlisten = [%q]\n[upstream]\ntargets = [%q]\n"+
		"[[route]]\nname = \"everything\"\nmatch = \"/\"\ngate = \"limit\"\n[stock]\nsource = \"off\"\n", o.from, o.to)
	return config.Parse("--from/--to", []byte(text), config.NoEnvironment, o.setMode)
}

// setMode puts --mode above what the file says.
func (o *runOptions) setMode(c *config.Config) []error {
	if o.mode != "" {
		c.Mode = o.mode
	}
	return nil
}
