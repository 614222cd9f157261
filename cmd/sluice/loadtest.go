package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sluice/config"
	"sluice/internal/cli"
	"sluice/internal/loadtest"
)

func newLoadtest() *cobra.Command {
	o := loadtest.SandboxOptions{Config: "config.toml", Crowd: loadtest.Crowd{Shape: loadtest.Spike}}
	var plot string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "loadtest", Short: "Test a sale beforehand with a crowd and a stand-in shop, and say what to change.",
		Long: "Test a sale beforehand with a crowd and a stand-in shop, and say what to change.\n" +
			"The shop and its stock are not touched. It loads the Redis of the configuration, under keys of its own.",
		Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return cli.Misuse(cmd, err)
			}
			return runLoadtest(cmd, o, plot, asJSON)
		},
	}
	f := cmd.Flags()
	cli.ConfigFlag(cmd, f, &o.Config, "configuration `file`")
	f.StringVar(&o.Route, "route", "", "`name` of the route that is tested (default: the first that sells)")
	f.IntVar(&o.Buyers, "buyers", 200_000, "how many buyers there are")
	f.Int64Var(&o.Stock, "stock", 500, "how many units there are")
	cli.ChoiceFlag(cmd, f, &o.Shape, "shape", "all buyers order at once (spike), or as many in each second (ramp)",
		loadtest.Spike, loadtest.Ramp)
	f.DurationVar(&o.Spread, "over", 0,
		"spike: half of the buyers have ordered by then (300ms); ramp: all of them have (1m)")
	f.DurationVar(&o.GiveUpAfter, "patience", time.Minute, "so long after the last buyer has come, all give up")
	f.IntVar(&o.Tries, "tries", 20, "how often one buyer orders at most")
	f.IntVar(&o.Addresses, "addresses", 0, "how many addresses the buyers come from (default: each has its own)")
	f.IntVar(&o.Connections, "connections", 0,
		"connections that the buyers share (default: as many as the gateway can keep waiting)")
	f.IntVar(&o.ShopCapacity, "shop-capacity", 64, "orders that the stand-in shop works on at a time")
	f.DurationVar(&o.ShopLatency, "shop-latency", 20*time.Millisecond, "time that the stand-in shop works on an order")
	f.IntVar(&o.ShopErrors, "shop-errors", 0, "of a hundred orders, how many the stand-in shop answers with 500")
	f.StringVar(&plot, "plot", "", "draw the course of the sale into this `file`, as SVG")
	f.BoolVar(&asJSON, "json", false, "print one JSON object, for other programs")
	return cmd
}

func runLoadtest(cmd *cobra.Command, o loadtest.SandboxOptions, plot string, asJSON bool) error {
	out := cmd.OutOrStdout()
	if !asJSON {
		o.Progress = out
	}
	ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer cancel()
	result, err := o.Run(ctx)
	if bad := (*config.Error)(nil); errors.As(err, &bad) {
		fmt.Fprintln(os.Stderr, err) // each of its lines says where it is
		return cli.ErrReported
	}
	if errors.Is(err, loadtest.ErrRedisAway) {
		fmt.Fprintln(os.Stderr, "sluice:", err)
		return cli.ErrOnline
	}
	if err != nil {
		return err
	}
	if plot != "" {
		if err := os.WriteFile(plot, result.Plot(), 0o644); err != nil {
			return err
		}
	}
	if err := writeResult(out, result, asJSON); err != nil {
		return err
	}
	if result.Err() != nil {
		if asJSON {
			fmt.Fprintln(os.Stderr, "sluice: BROKEN", result.Err())
		}
		return cli.ErrReported
	}
	return nil
}

func writeResult(out io.Writer, result loadtest.Result, asJSON bool) error {
	if !asJSON {
		_, err := result.WriteTo(out)
		return err
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(result)
}
