package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/internal/adminclient"
	"sluice/internal/app/stores"
)

const (
	adoptAtOnce = 500              // orders of one request
	adoptWithin = 10 * time.Minute // all of them
)

func (s *stockTarget) newAdopt() *cobra.Command {
	var sku string
	var apply bool
	cmd := &cobra.Command{
		Use:   "adopt <file>",
		Short: "Take the orders that the shop has into the ledger. Shows what would change; --apply does it.",
		Long: "Take the orders that the shop has into the ledger. The file is CSV (serial,user,quantity, and sku with a " +
			"header)\n" +
			"or has a JSON object in each line; - = standard input. Without --apply, the command shows what would change.",
		Args: exactly,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.kind == "layout" {
				return misuse(cmd, errors.New("--kind layout: only ledgers adopt orders"))
			}
			orders, err := openOrders(args[0], sku)
			if err != nil {
				return err
			}
			return s.adoptAll(cmd, orders, apply)
		},
	}
	skuFlag(cmd, &sku, "of orders that do not name their SKU")
	cmd.Flags().BoolVar(&apply, "apply", false, "do it")
	return cmd
}

// openOrders reads the orders in a file; "-" = standard input.
func openOrders(path, sku string) (map[string][]shopOrder, error) {
	in := os.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	orders, err := readOrders(in, sku)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return orders, nil
}

func (s *stockTarget) adoptAll(cmd *cobra.Command, orders map[string][]shopOrder, apply bool) error {
	if err := s.check(cmd); err != nil {
		return err
	}
	to, done, err := s.open()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(cmd.Context(), adoptWithin)
	defer cancel()
	conflicts := 0
	for _, sku := range slices.Sorted(maps.Keys(orders)) {
		all, err := adopt(ctx, to, sku, orders[sku], adoption{apply: apply})
		if err != nil {
			return err
		}
		printAdoption(cmd.OutOrStdout(), all)
		conflicts += len(all.Conflicts)
	}
	switch {
	case conflicts > 0:
		return fmt.Errorf("%d orders contradict what the ledger knows of their serials, and were passed over", conflicts)
	case !apply:
		fmt.Fprintln(os.Stderr, "sluice: nothing was changed; --apply does it, and sluice stock thaw opens the SKU then")
	}
	return nil
}

// adoption says how orders are adopted.
type adoption struct {
	apply   bool // or else it is shown what would change
	missing bool // only those that the ledger does not know
}

// adopt sends the orders of one SKU, some at a time, and adds up what came of it.
func adopt(
	ctx context.Context, to adminclient.Client, sku string, orders []shopOrder, how adoption,
) (all admin.Adoption,
	err error) {
	all.SKU, all.Applied = sku, how.apply
	for some := range slices.Chunk(orders, adoptAtOnce) {
		var done admin.Adoption
		in := map[string]any{"orders": some, "apply": how.apply, "missing": how.missing}
		if err := to.Call(ctx, "POST", "/stock/"+url.PathEscape(sku)+"/adopt", in, &done); err != nil {
			return all, fmt.Errorf("adopt orders of %s: %w", sku, err)
		}
		all.Unknown, all.Held, all.Sold, all.Returned = all.Unknown+done.Unknown, all.Held+done.Held, all.Sold+done.Sold,
			all.Returned+done.Returned
		all.Units, all.Stock = all.Units+done.Units, done.Stock
		all.Conflicts = append(all.Conflicts, done.Conflicts...)
	}
	return all, nil
}

func printAdoption(out io.Writer, a admin.Adoption) {
	verb := "would be"
	if a.Applied {
		verb = "are"
	}
	fmt.Fprintf(out, "%s\t%d orders were not known, %d held, %d given back: %d units %s sold by them; %d were sold "+
		"already\n",
		a.SKU, a.Unknown, a.Held, a.Returned, a.Units, verb, a.Sold)
	for _, conflict := range a.Conflicts {
		fmt.Fprintf(out, "%s\tpassed over: %s\n", stores.PrintableName(a.SKU), stores.PrintableName(conflict))
	}
	fmt.Fprintln(out, stores.DescribeStock(*a.Stock))
	if l := a.Stock.Ledger; a.Applied && l.Free < 0 || !a.Applied && l.Free+l.Held < a.Units {
		fmt.Fprintf(os.Stderr,
			"sluice: more of %s is sold then than there is: cancel orders at the shop, or raise the total\n",
			stores.PrintableName(a.SKU))
	}
}
