package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/adminclient"
	"sluice/internal/app/stores"
	"sluice/internal/settler"
	settlement "sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger/protocol"
)

const (
	// An instance sweeps its ledgers every second, and up to 20 s apart where there are thousands of them. Until then
	// it does not know that a ledger was made again.
	toldAfter    = 5 * time.Second
	maxToldAfter = 25 * time.Second
	toldWithin   = 90 * time.Second // longer than all of them need to tell
)

// recreation is what sluice stock recreate was asked for.
type recreation struct {
	sku          string
	total, limit int64
	source       string // a file, "-", "settle" or "none"
}

func (s *stockTarget) newRecreate() *cobra.Command {
	want := recreation{total: -1, limit: -1}
	cmd := &cobra.Command{
		Use: "recreate <sku>", Short: "Make a ledger again that Redis has lost, adopt the orders of before, and open it.",
		Long: "Make a ledger again that Redis has lost, whole or in part, with the orders of before. It is frozen until\n" +
			"it has those that running instances tell, and those of --adopt:\n" +
			"  FILE    the orders that the shop has now, as in sluice stock adopt; - = standard input\n" +
			"  settle  those of the settlement's database, where every instance that sold this SKU still runs\n" +
			"  none    there are none: you say that the shop has no order of this SKU\n" +
			"Then it opens. If it is interrupted, the same command goes on.",
		Args: exactly, ValidArgsFunction: completeBy(0, (*config.Config).SKUsOnSale),
		RunE: func(cmd *cobra.Command, args []string) error {
			want.sku = args[0]
			return s.recreate(cmd, want)
		},
	}
	cmd.Flags().Int64Var(&want.total, "total", -1, "`units` for sale in all, with those that are sold already")
	cmd.Flags().Int64Var(&want.limit, "limit", -1, "`units` that one person may have; 0 = no limit; -1 = as configured")
	cmd.Flags().StringVar(&want.source, "adopt", "", "where the orders of before are: `FILE|settle|none`")
	return cmd
}

// check reports what cannot be meant.
func (r *recreation) check(kind, admin string) error {
	switch {
	case kind == "layout":
		return errors.New("--kind layout: only ledgers are made again")
	case r.total < 0:
		return errors.New("--total is missing: name the units for sale in all, with those that are sold already")
	case r.source == "":
		return errors.New("--adopt is missing: name a file with the orders that the shop has, or settle, or none")
	case r.source == "settle" && admin != "":
		return errors.New("--adopt settle reads the database of --config: leave --admin out")
	case r.limit < -1:
		return fmt.Errorf("--limit %d: it must be 0, for none, or the units that one person may have", r.limit)
	}
	return nil
}

// recreate does it: the orders are read before anything is changed.
func (s *stockTarget) recreate(cmd *cobra.Command, want recreation) error {
	err := want.check(s.kind, s.Admin)
	if err == nil {
		err = stores.CheckSKU(want.sku)
	}
	if err != nil {
		return misuse(cmd, err)
	}
	if err := s.check(cmd); err != nil {
		return err
	}
	orders, err := s.ordersOfBefore(cmd.Context(), want)
	if err != nil {
		return err
	}
	to, done, err := s.open()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(cmd.Context(), adoptWithin)
	defer cancel()
	if err := want.make(ctx, to); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "sluice: %s is frozen; waiting for what running instances know of its orders\n", want.sku)
	if err := want.awaitTold(ctx, to); err != nil {
		return err
	}
	if len(orders) > 0 {
		all, err := adopt(ctx, to, want.sku, orders, adoption{apply: true, missing: want.source == "settle"})
		if err != nil {
			return fmt.Errorf("%w\n%s stays frozen: say the same command again", err, want.sku)
		}
		printAdoption(cmd.OutOrStdout(), all)
		if len(all.Conflicts) > 0 {
			return fmt.Errorf("%d orders contradict what instances have told; %s stays frozen: compare them with the shop, "+
				"then sluice stock thaw %s", len(all.Conflicts), want.sku, want.sku)
		}
	}
	var now admin.Stock
	in := map[string]any{"state": "on", "reconciled": true}
	if err := to.Call(ctx, "POST", "/stock/"+adminclient.Segment(want.sku)+"?kind=ledger", in, &now); err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), stores.DescribeStock(now))
	return err
}

// make has the ledger made, frozen.
func (r *recreation) make(ctx context.Context, to adminclient.Client) error {
	in := map[string]any{"total": r.total, "none": r.source == "none"}
	if r.limit >= 0 {
		in["limit"] = r.limit
	}
	var now admin.Stock
	return to.Call(ctx, "POST", "/stock/"+adminclient.Segment(r.sku)+"/recreate", in, &now)
}

// awaitTold waits until every instance that knows orders of before has told them.
func (r *recreation) awaitTold(ctx context.Context, to adminclient.Client) error {
	var all struct{ Stock []admin.Stock }
	if err := to.Call(ctx, "GET", "/stock?kind=ledger&limit=10000", nil, &all); err != nil {
		return err
	}
	start, wait := time.Now(), min(toldAfter+time.Duration(len(all.Stock)/100)*time.Second, maxToldAfter)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		var now admin.Stock
		err := to.Call(ctx, "GET", "/stock/"+adminclient.Segment(r.sku)+"?kind=ledger", nil, &now)
		took := time.Since(start)
		switch {
		case err == nil && now.Ledger.Untold == 0 && took > wait:
			return nil
		case err == nil && took > toldWithin:
			return fmt.Errorf("%d instances cannot tell all that they know of %s: they have died, or took more orders than "+
				"they remember; it stays frozen; adopt every order that the shop has (sluice stock adopt FILE --apply), then "+
				"sluice stock thaw %s", now.Ledger.Untold, r.sku, r.sku)
		case err != nil && took > toldWithin:
			return err
		}
	}
}

// ordersOfBefore reads the orders to adopt.
func (s *stockTarget) ordersOfBefore(ctx context.Context, want recreation) ([]shopOrder, error) {
	switch want.source {
	case "none":
		return nil, nil
	case "settle":
		return s.settledOrders(ctx, want.sku)
	}
	orders, err := openOrders(want.source, want.sku)
	if err != nil {
		return nil, err
	}
	if len(orders) != 1 || orders[want.sku] == nil {
		return nil, fmt.Errorf("%s has orders of %s: it must have those of %s alone", want.source,
			slices.Sorted(maps.Keys(orders)), want.sku)
	}
	return orders[want.sku], nil
}

// settledOrders are those of the settlement's database that are sold, or were undecided when it last looked.
func (s *stockTarget) settledOrders(ctx context.Context, sku string) (orders []shopOrder, err error) {
	settled, c, err := openSettlement(ctx, s.Config)
	if err != nil {
		return nil, err
	}
	defer settled.Close()
	cursor, ok, err := settled.Store.Cursor(ctx, sku)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("the database of %s has never settled %s: adopt a file of the shop's orders",
			c.Settle.Database, sku)
	}
	undecided := 0
	err = settled.Store.Orders(ctx, sku, cursor.Born, func(r settlement.Record) bool {
		if r.Status == 'C' || r.Status == 'H' {
			orders = append(orders, shopOrder{Serial: r.Serial, User: r.User, Quantity: r.Quantity})
		}
		if r.Status == 'H' {
			undecided++
		}
		return true
	})
	if err == nil {
		fmt.Fprintf(os.Stderr, "sluice: the database has %d orders of %s, %d of them undecided then; where no instance "+
			"knows better, these count as sold: refund those that the shop does not have\n", len(orders), sku, undecided)
	}
	return orders, err
}

// knownToSettlement reports that the settlement's database knows a SKU that has no ledger. Where it cannot be asked,
// that is an error: the ledger may have been lost.
func (s *stockTarget) knownToSettlement(ctx context.Context, sku string) error {
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
	err = to.Call(ctx, "GET", "/stock/"+url.PathEscape(sku)+"?kind=ledger", nil, new(admin.Stock))
	if !errors.Is(err, adminclient.ErrNotFound) {
		return nil // it has a ledger, or the change says what is wrong
	}
	store, err := settler.OpenStore(c)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.CheckSchema(ctx); errors.Is(err, sqlstore.ErrSchema) {
		return nil // it has never settled anything
	} else if err != nil {
		return fmt.Errorf("%s has no ledger, and the settlement's database cannot tell whether it had one; start the "+
			"database, or pass --admin: the gateway does not ask it: %w", sku, err)
	}
	_, ok, err := store.Cursor(ctx, sku)
	if err == nil && ok {
		err = fmt.Errorf("%s was sold before, says the settlement's database: %w", sku, protocol.LostLedger(sku))
	}
	return err
}
