package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/adminclient"
	"sluice/internal/cli"
)

// stockTarget is where the stock commands work, and on which kind of stock.
type stockTarget struct {
	target
	kind string // "" = the ledgers, if any route reserves
	json bool   // what is shown is for programs
}

func newStock() *cobra.Command {
	var at stockTarget
	cmd := cli.Parent("stock", "Read and set the stock.")
	at.addTo(cmd, cmd.PersistentFlags(), aboutRedis)
	cli.ChoiceFlag(cmd, cmd.PersistentFlags(), &at.kind, "kind",
		"where a SKU has both: Sluice's ledger, or the shop's own key "+
			"(default: the ledger, if any route reserves)", "ledger", "layout")
	cmd.AddCommand(at.newGet(), at.newList(), at.newSet(), at.newAdd(),
		at.newShut("pause <sku>", "Stop selling a SKU for now. Orders under way are settled.", "paused"),
		at.one("resume <sku>", "Sell a SKU again. A frozen one: see recover.",
			func() any { return map[string]any{"state": "on"} }),
		at.newShut("end <sku>", "Stop selling a SKU for good: shoppers are told that the sale is over.", "ended"),
		at.one("freeze <sku>", "Close a ledger that may have lost orders, until an operator recovers it.",
			func() any { return map[string]any{"state": "frozen"} }),
		at.newRecover())
	return cmd
}

// one is a command that changes the stock of one SKU, its argument, and shows it.
func (s *stockTarget) one(use, short string, change func() any) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cli.Exactly, ValidArgsFunction: cli.CompleteBy((*config.Config).SKUsOnSale),
		RunE: func(cmd *cobra.Command, args []string) error { return s.printStock(cmd, "POST", args[0], change()) },
	}
}

// printStock asks about a SKU, or changes it, and prints its stock.
func (s *stockTarget) printStock(cmd *cobra.Command, method, sku string, change any, header ...string) error {
	if err := admin.CheckSKU(sku); err != nil {
		return err
	}
	var now admin.Stock
	if err := s.callStock(cmd, method, "/"+adminclient.Segment(sku), url.Values{}, change, &now, header...); err != nil {
		return err
	}
	if s.json {
		return printJSON(cmd, now)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), stores.DescribeStock(now))
	return err
}

func (s *stockTarget) callStock(cmd *cobra.Command, method, path string, query url.Values, in, out any,
	header ...string) error {
	if s.kind != "" {
		query.Set("kind", s.kind)
	}
	return s.call(cmd, method, "/stock"+path+"?"+query.Encode(), in, out, header...)
}

func (s *stockTarget) newGet() *cobra.Command {
	return jsonFlag(&cobra.Command{
		Use: "get <sku>", Short: "Show the stock of a SKU.", Args: cli.Exactly,
		ValidArgsFunction: cli.CompleteBy((*config.Config).SKUsOnSale),
		RunE:              func(cmd *cobra.Command, args []string) error { return s.printStock(cmd, "GET", args[0], nil) },
	}, &s.json)
}

func (s *stockTarget) newSet() *cobra.Command {
	var limit int64
	cmd := &cobra.Command{
		Use: "set <sku> <units>", Short: "Set the stock of a SKU. A SKU without a ledger gets one, and is on sale.",
		Args: cli.Exactly, ValidArgsFunction: cli.CompleteBy((*config.Config).SKUsOnSale),
		RunE: func(cmd *cobra.Command, args []string) error {
			units, err := number("<units>", args[1])
			switch {
			case err != nil:
				return cli.Misuse(cmd, err)
			case units < 0:
				return cli.Misuse(cmd, fmt.Errorf("<units> %d: a stock is 0 or more", units))
			case limit < -1:
				return cli.Misuse(cmd, fmt.Errorf("--limit %d: it must be 0, for none, or the units that one person may have", limit))
			}
			if err := s.check(cmd); err != nil {
				return err
			}
			if err := s.checkNew(cmd.Context(), args[0]); err != nil {
				return err
			}
			change := map[string]any{"set": units}
			if limit >= 0 {
				change["limit"] = limit
			}
			return s.printStock(cmd, "POST", args[0], change)
		},
	}
	cmd.Long = cmd.Short + "\n<units> is 0 or more. In the shop's own key: what is left. In a ledger: the total, with " +
		"what is held and sold.\n" +
		"A SKU that had a ledger which Redis has lost gets none: sluice stock recover --total makes it again, with its orders."
	cmd.Flags().Int64Var(&limit, "limit", -1,
		"in a ledger: `units` that one person may have; 0 = no limit; -1 = as it was")
	return cmd
}

func (s *stockTarget) newAdd() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "add <sku> <units>", Short: "Add to the stock of a SKU; a negative number takes units away.", Args: cli.Exactly,
		ValidArgsFunction: cli.CompleteBy((*config.Config).SKUsOnSale),
		RunE: func(cmd *cobra.Command, args []string) error {
			units, err := number("<units>", args[1])
			if err != nil {
				return cli.Misuse(cmd, err)
			}
			change := map[string]any{"add": units}
			if !cmd.Flags().Changed("key") {
				return s.printStock(cmd, "POST", args[0], change)
			}
			if key == "" { // a script that has left the name empty would add each time
				return cli.Misuse(cmd, errors.New("--key is empty: give the addition a name, or leave --key out"))
			}
			return s.printStock(cmd, "POST", args[0], change, "Idempotency-Key", key)
		},
	}
	cmd.Flags().StringVar(&key, "key", "",
		"in a ledger: a `name` for this addition; repeated with the same name, it is done once")
	return cmd
}

// newShut is a command that stops selling a SKU: until an operator says otherwise, or in a ledger for a while.
func (s *stockTarget) newShut(use, short, state string) *cobra.Command {
	var lasts period
	cmd := s.one(use, short, func() any { return map[string]any{"state": state} })
	forGood := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case lasts == period{}:
			return forGood(cmd, args)
		case s.kind == "layout":
			return cli.Misuse(cmd, errors.New("--kind layout: only a ledger is stopped for a while: leave --for out"))
		}
		return s.override(cmd, &lasts, map[string]any{"sku": args[0], "value": state})
	}
	cmd.Long = short + "\nWith --for or --until the ledger returns to its state by itself. A running gateway does that.\n" +
		"sluice stock resume ends it before."
	lasts.addTo(cmd)
	return cmd
}

func (s *stockTarget) newList() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "Show all SKUs.", Args: cli.Exactly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(cmd, limit); err != nil {
				return err
			}
			var all struct {
				Stock []admin.Stock `json:"stock"`
			}
			if err := s.callStock(cmd, "GET", "", url.Values{"limit": {strconv.Itoa(limit)}}, nil, &all); err != nil {
				return err
			}
			if s.json {
				return printJSON(cmd, all)
			}
			for _, one := range all.Stock {
				fmt.Fprintln(cmd.OutOrStdout(), stores.DescribeStock(one))
			}
			if len(all.Stock) == 0 {
				fmt.Fprintln(os.Stderr, "no SKU has stock")
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 1000, "show at most `N`, up to 10000")
	return jsonFlag(cmd, &s.json)
}

// checkLimit reports a limit that no list of the API takes.
func checkLimit(cmd *cobra.Command, limit int) error {
	if limit < 1 || limit > 10_000 {
		return cli.Misuse(cmd, fmt.Errorf("--limit %d: it must be 1 to 10000", limit))
	}
	return nil
}

// number is a whole number among the arguments.
func number(name, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a whole number", name, text)
	}
	return n, nil
}

// checkNew is an error where a SKU without a ledger may have had one: sluice-settle asks the settlement's databases.
func (s *stockTarget) checkNew(ctx context.Context, sku string) error {
	if s.Admin != "" || s.kind == "layout" {
		return nil
	}
	c, err := config.Load(s.Config, os.LookupEnv)
	if err != nil || c.Settle.Database == "" || !c.UsesLedger() {
		return err
	}
	to, done, err := s.open()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, operateWithin)
	defer cancel()
	err = to.Call(ctx, "GET", "/stock/"+adminclient.Segment(sku)+"?kind=ledger", nil, new(admin.Stock))
	if !errors.Is(err, adminclient.ErrNotFound) {
		return nil // it has a ledger, or the change says what is wrong
	}
	_, err = askSettlement(ctx, s.Config, "check-new", "--", sku)
	return err
}
