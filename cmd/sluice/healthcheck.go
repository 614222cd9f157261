package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"sluice/config"
	"sluice/internal/adminclient"
	"sluice/internal/cli"
)

type healthcheckOptions struct {
	config, ops string
	ready       bool
}

func newHealthcheck() *cobra.Command {
	h := healthcheckOptions{config: "config.toml"}
	if _, err := os.Stat(h.config); err != nil { // of the image and the packages
		h.config = "/etc/sluice/config.toml"
	}
	cmd := &cobra.Command{
		Use: "healthcheck", Short: "Ask a running gateway whether it is alive; for containers.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error { return h.run(cmd.OutOrStdout()) },
	}
	cli.ConfigFlag(cmd, cmd.Flags(), &h.config, "take ops.listen from this `file`, if it exists")
	cmd.Flags().StringVar(&h.ops, "ops", "", "or ask this `address`, such as 127.0.0.1:8091")
	cmd.Flags().BoolVar(&h.ready, "ready", false, "ask whether it is ready, not only alive")
	return cmd
}

func (h *healthcheckOptions) run(out io.Writer) error {
	address, err := h.address()
	if err != nil {
		return err
	}
	path := "/livez"
	if h.ready {
		path = "/readyz?verbose"
	}
	base, client := adminclient.NewHTTP(address, 2*time.Second)
	resp, err := client.Get(base + path)
	if err != nil {
		return fmt.Errorf("%w; start the gateway, or name its ops.listen with --ops", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	fmt.Fprint(out, string(text))
	if resp.StatusCode != http.StatusOK {
		return cli.ErrReported
	}
	return nil
}

// address is where to ask: as said, else as configured, else the default.
func (h *healthcheckOptions) address() (string, error) {
	address := h.ops
	if address == "" {
		address = config.Default().Ops.Listen
		if _, err := os.Stat(h.config); err == nil {
			c, err := config.Load(h.config, os.LookupEnv)
			if err != nil {
				return "", err
			}
			address = c.Ops.Listen
		}
	}
	if address == "" {
		return "", fmt.Errorf(`ops.listen of %s is "": nothing listens there`, h.config)
	}
	return address, nil
}
