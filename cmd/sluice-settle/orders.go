package main

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/cli"
	"sluice/internal/settler"
)

func newOrders(file *string) *cobra.Command {
	var unknown bool
	cmd := &cobra.Command{
		Use: "orders <sku>", Short: "Print the orders of a SKU that are sold or undecided, one JSON object a line.",
		Args: cli.Exactly, ValidArgsFunction: cli.CompleteBy((*config.Config).SKUsOnSale),
		RunE: func(cmd *cobra.Command, args []string) error {
			homes, c, err := openHomes(*file)
			if err != nil {
				return err
			}
			defer homes.Close()
			orders, err := readOrders(cmd, homes, c, args[0], unknown)
			if err != nil {
				return err
			}
			out := json.NewEncoder(cmd.OutOrStdout())
			for _, o := range orders {
				if err := out.Encode(o); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Long = cmd.Short + "\nThe command sluice stock recover --from settle reads them."
	cmd.Flags().BoolVar(&unknown, "unknown", false, "only those that the ledger does not know, with those of the shop")
	return cmd
}

func readOrders(cmd *cobra.Command, homes settler.Homes, c *config.Config, sku string, unknown bool) ([]admin.Order,
	error) {
	if !unknown {
		return homes.Orders(cmd.Context(), c, sku, cmd.ErrOrStderr())
	}
	s, err := atHomeOf(cmd, homes, sku)
	if err != nil {
		return nil, err
	}
	return s.UnknownOrders(cmd.Context(), c.Settle.OrdersQuery, sku)
}

// newCheckNew is what sluice stock set asks before it makes a ledger.
func newCheckNew(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "check-new <sku>", Short: "Fail unless no database has ever settled a SKU.", Args: cli.Exactly, Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := config.Load(*file, os.LookupEnv)
			if err != nil {
				return err
			}
			return settler.CheckNew(cmd.Context(), c, args[0])
		},
	}
}
