package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/adminclient"
	"sluice/internal/cli"
)

func newSale() *cobra.Command {
	cmd, at := parentOf("sale", "Show the sales, and pause, resume or end one.", aboutRedis)
	cmd.AddCommand(newSaleList(at),
		newSaleState(at, "pause <name>", "Stop a sale for now, on all instances. Orders under way are settled.", "paused"),
		newSaleState(at, "resume <name>", "Resume a sale that was paused.", "on"),
		newSaleState(at, "end <name>", "End a sale before its time, on all instances.", "ended"))
	return cmd
}

func newSaleList(at *target) *cobra.Command {
	var asJSON bool
	return jsonFlag(&cobra.Command{
		Use: "list", Short: "Show all sales.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all struct {
				Sales []admin.Sale `json:"sales"`
			}
			if err := at.call(cmd, "GET", "/sales", nil, &all); err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd, all)
			}
			if len(all.Sales) > 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "NAME\tSTATE\tHOURS\tSKUS")
			}
			for _, one := range all.Sales {
				printSale(cmd, one)
			}
			if len(all.Sales) == 0 {
				fmt.Fprintln(os.Stderr, "no sale is configured")
			}
			return nil
		},
	}, &asJSON)
}

// newSaleState is a command that brings a sale into a state.
func newSaleState(at *target, use, short, state string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			var now admin.Sale
			in := map[string]any{"state": state}
			if err := at.call(cmd, "POST", "/sales/"+adminclient.Segment(args[0]), in, &now); err != nil {
				return err
			}
			printSale(cmd, now)
			return nil
		},
		ValidArgsFunction: cli.CompleteBy((*config.Config).SaleNames),
	}
}

func printSale(cmd *cobra.Command, s admin.Sale) {
	fmt.Fprintf(cmd.OutOrStdout(), "%s\t%s\t%s to %s\t%s\n", s.Name, s.State, s.Starts.Format(time.RFC3339),
		s.Ends.Format(time.RFC3339), strings.Join(s.SKUs, " "))
}
