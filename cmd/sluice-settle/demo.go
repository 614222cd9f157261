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
	o := demo.Options{Version: cli.Version(), Gate: "reserve", Listen: "127.0.0.1:0", Dashboard: "127.0.0.1:0"}
	var database string
	cmd := &cobra.Command{
		Use: "demo", Short: "Run the sale of sluice demo, settle it into SQLite, and ask SQL how the books stand.",
		Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return cli.Misuse(cmd, err)
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer cancel()
			s, err := Open(ctx, database)
			if err != nil {
				return err
			}
			defer s.Close()
			o.Audit = s.Audit
			return o.Run(ctx)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Shoppers, "shoppers", 2000, "how many shoppers order")
	f.Int64Var(&o.Units, "units", 100, "how many units there are")
	f.DurationVar(&o.GiveUpAfter, "patience", 20*time.Second, "after this time the last shopper gives up")
	f.StringVar(&database, "database", "", "keep the orders: a new `file` of SQLite; otherwise it is removed at the end")
	return cmd
}
