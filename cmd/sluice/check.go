package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway"
	"sluice/gateway/stores"
	"sluice/internal/cli"
	"sluice/internal/doctor"
)

type checkOptions struct {
	config       string
	online, json bool
	verbose      bool
	skus         []string
}

func newCheck() *cobra.Command {
	o := checkOptions{config: "config.toml"}
	cmd := &cobra.Command{
		Use: "check [file]", Short: "Report all that is wrong with a configuration, and what its numbers amount to.",
		Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(o.skus) > 0 && !o.online {
				return cli.Misuse(cmd, errors.New("--sku belongs to --online"))
			}
			o.config = argument(args, o.config)
			return o.run(cmd)
		},
	}
	cli.ConfigFlag(cmd, cmd.Flags(), &o.config, "configuration `file`")
	cmd.Flags().BoolVar(&o.online, "online", false,
		"also try Redis, the shop, and whether what is sold has stock; exit code 3 when that fails")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object, for other programs")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "also show what the numbers amount to: routes, limits, memory")
	cmd.Flags().StringSliceVar(&o.skus, "sku", nil,
		"with --online: a `SKU` that must have stock, besides those of the sales")
	return cmd
}

func (o *checkOptions) run(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	r := doctor.Report{File: o.config, SKUs: o.skus}
	c, err := o.load()
	if err != nil {
		return o.reportInvalid(&r, out, err)
	}
	switch {
	case o.online && !o.json:
		fmt.Fprintf(out, "%s: the file is valid; what it names is tried below\n\n", o.config)
	case !o.json:
		fmt.Fprintf(out, "%s: the file is valid\n\n", o.config)
	}
	r.Examine(c)
	if !o.json {
		o.print(out, r.Findings)
		r.Each = func(f admin.Finding) { o.print(out, []admin.Finding{f}) }
	}
	if o.online {
		if err := r.Try(cmd.Context(), c); err != nil {
			return err
		}
	}
	if o.json {
		if err := r.WriteJSON(out); err != nil {
			return err
		}
	}
	if r.Failed() {
		return cli.ErrOnline
	}
	if !o.json && !o.verbose {
		if slices.ContainsFunc(r.Findings, func(f admin.Finding) bool { return f.Result != "info" }) {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, "routes, limits and memory: add -v")
		if !o.online {
			fmt.Fprintln(out, "Redis and the shop: --online")
		}
	}
	return nil
}

// print shows findings: first what is to be done, and what is in force only where that is asked for.
func (o *checkOptions) print(out io.Writer, findings []admin.Finding) {
	for _, of := range [][]string{{"fail", "warning", "ok"}, {"info"}} {
		for _, f := range findings {
			if slices.Contains(of, f.Result) && (o.verbose || f.Result != "info") {
				fmt.Fprint(out, doctor.Line(f))
			}
		}
	}
}

// load reads the configuration; "-" is standard input.
func (o *checkOptions) load() (c *config.Config, err error) {
	if o.config == "-" {
		text, err := io.ReadAll(io.LimitReader(os.Stdin, maxStdin))
		if err != nil {
			return nil, err
		}
		c, err = config.Parse("standard input", text, os.LookupEnv, gateway.Validate)
		if err != nil {
			return nil, err
		}
	} else if c, err = config.Load(o.config, os.LookupEnv, gateway.Validate); err != nil {
		return nil, err
	}
	if c.Stock.Source == "redis" {
		_, err = stores.ShopLayout(c)
	}
	return c, err
}

// maxStdin bounds a configuration on standard input, in bytes.
const maxStdin = 16 << 20

// reportInvalid reports a configuration that cannot be used: on standard error, or as findings in JSON.
func (o *checkOptions) reportInvalid(r *doctor.Report, out io.Writer, err error) error {
	if !o.json {
		fmt.Fprintln(os.Stderr, err)
		return cli.ErrReported
	}
	for line := range strings.Lines(err.Error()) {
		r.Fail("config", "%s", strings.TrimSuffix(line, "\n"))
	}
	return errors.Join(r.WriteJSON(out), cli.ErrReported)
}
