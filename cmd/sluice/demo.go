package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sluice/internal/cli"
	"sluice/internal/demo"
)

func newDemo() *cobra.Command {
	o := demo.Options{Version: version, Gate: "reserve"}
	cmd := &cobra.Command{
		Use: "demo", Short: "Run a shop, a gateway and a crowd in one process, and report what happened.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Keep && !cmd.Flags().Changed("shoppers") {
				o.Shoppers = 6000
			}
			if o.Keep && !cmd.Flags().Changed("units") {
				o.Units = 2000
			}
			if o.Room && !cmd.Flags().Changed("patience") {
				o.GiveUpAfter = 2 * time.Minute // a room is over when its last unit is decided, and each call may take 5 s
			}
			if err := o.Check(); err != nil {
				return cli.Misuse(cmd, err)
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer cancel()
			return o.Run(ctx)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Shoppers, "shoppers", 2000, "how many shoppers order; with --keep in each minute, and 6000")
	f.Int64Var(&o.Units, "units", 100, "how many units there are; with --keep 2000")
	f.DurationVar(&o.GiveUpAfter, "patience", 20*time.Second, "after this time the last shopper gives up; with --room 2m")
	cli.ChoiceFlag(cmd, f, &o.Gate, "gate",
		"the gateway takes the units before it forwards (reserve), or the shop does (check)",
		"reserve", "check")
	f.BoolVar(&o.WithoutGate, "without-gate", false,
		"then the same crowd at a naive shop without Sluice, and both side by side")
	f.BoolVar(&o.Queue, "queue", false,
		"orders wait for a shop of 20 orders a second; then the same crowd without a queue, and both side by side")
	f.BoolVar(&o.Keep, "keep", false, "a sale to watch and to operate on the dashboard, until Ctrl-C")
	f.BoolVar(&o.Room, "room", false,
		"with a waiting room before the sale: a draw, and calls for free units; needs redis-server")
	f.DurationVar(&o.OpensIn, "opens-in", 15*time.Second, "with --keep: when the sale opens")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:0", "`address` of the gateway; port 0 = any free port")
	f.StringVar(&o.Dashboard, "dashboard", "127.0.0.1:0", "`address` of the dashboard; port 0 = any free port")
	return cmd
}
