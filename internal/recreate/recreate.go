// Package recreate adopts orders that a shop has into ledgers, and makes ledgers again that Redis has lost, both by the
// control API. It does not decide which orders a ledger takes: the ledger does.
package recreate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice/admin"
	"sluice/internal/adminclient"
	"sluice/internal/app/stores"
	"sluice/internal/periodic"
)

const (
	// An instance sweeps its ledgers every second, and up to 20 s apart where there are thousands of them. Until then
	// it does not know that a ledger was made again.
	toldAfter    = 5 * time.Second
	maxToldAfter = 25 * time.Second
	toldWithin   = 90 * time.Second // longer than all of them need to tell
)

// Recreation is what sluice stock recreate was asked for.
type Recreation struct {
	SKU          string
	Total, Limit int64
	Source       string // a file, "-", "settle" or "none"
}

// Check reports what cannot be meant.
func (r *Recreation) Check(kind, admin string) error {
	switch {
	case kind == "layout":
		return errors.New("--kind layout: only ledgers are made again")
	case r.Total < 0:
		return errors.New("--total is missing: name the units for sale in all, with those that are sold already")
	case r.Source == "":
		return errors.New("--adopt is missing: name a file with the orders that the shop has, or settle, or none")
	case r.Source == "settle" && admin != "":
		return errors.New("--adopt settle reads the database of --config: leave --admin out")
	case r.Limit < -1:
		return fmt.Errorf("--limit %d: it must be 0, for none, or the units that one person may have", r.Limit)
	}
	return nil
}

// Run has it done: orders are those of before, from Orders or Settled.
func (r *Recreation) Run(ctx context.Context, to adminclient.Client, orders []Order, by Printer) error {
	ctx, cancel := context.WithTimeout(ctx, adoptWithin)
	defer cancel()
	if err := r.make(ctx, to); err != nil {
		return err
	}
	fmt.Fprintf(by.Err, "sluice: %s is frozen; waiting for what running instances know of its orders\n", r.SKU)
	if err := r.awaitTold(ctx, to); err != nil {
		return err
	}
	if len(orders) > 0 {
		all, err := adopt(ctx, to, r.SKU, orders, adoption{apply: true, missing: r.Source == "settle"})
		if err != nil {
			return fmt.Errorf("%w\n%s stays frozen: say the same command again", err, r.SKU)
		}
		by.adopted(all, r.Source == "settle")
		if len(all.Conflicts) > 0 {
			return fmt.Errorf("%d orders contradict what instances have told; %s stays frozen: compare them with the shop, "+
				"then sluice stock thaw %s", len(all.Conflicts), r.SKU, r.SKU)
		}
	}
	var now admin.Stock
	in := map[string]any{"state": "on", "reconciled": true}
	if err := to.Call(ctx, "POST", "/stock/"+adminclient.Segment(r.SKU)+"?kind=ledger", in, &now); err != nil {
		return err
	}
	_, err := fmt.Fprintln(by.Out, stores.DescribeStock(now))
	return err
}

// make has the ledger made, frozen.
func (r *Recreation) make(ctx context.Context, to adminclient.Client) error {
	in := map[string]any{"total": r.Total, "none": r.Source == "none"}
	if r.Limit >= 0 {
		in["limit"] = r.Limit
	}
	var now admin.Stock
	return to.Call(ctx, "POST", "/stock/"+adminclient.Segment(r.SKU)+"/recreate", in, &now)
}

// awaitTold waits until every instance that knows orders of before has told them.
func (r *Recreation) awaitTold(ctx context.Context, to adminclient.Client) error {
	var all struct{ Stock []admin.Stock }
	if err := to.Call(ctx, "GET", "/stock?kind=ledger&limit=10000", nil, &all); err != nil {
		return err
	}
	start, wait := time.Now(), min(toldAfter+time.Duration(len(all.Stock)/100)*time.Second, maxToldAfter)
	for {
		if !periodic.Pause(ctx, time.Second) {
			return ctx.Err()
		}
		var now admin.Stock
		err := to.Call(ctx, "GET", "/stock/"+adminclient.Segment(r.SKU)+"?kind=ledger", nil, &now)
		took := time.Since(start)
		switch {
		case err == nil && now.Ledger.Untold == 0 && took > wait:
			return nil
		case err == nil && took > toldWithin:
			return fmt.Errorf("%d instances cannot tell all that they know of %s: they have died, or took more orders than "+
				"they remember; it stays frozen; adopt every order that the shop has (sluice stock adopt FILE --apply), then "+
				"sluice stock thaw %s", now.Ledger.Untold, r.SKU, r.SKU)
		case err != nil && took > toldWithin:
			return err
		}
	}
}

// Orders are those of the file that r.Source names.
func (r *Recreation) Orders() ([]Order, error) {
	orders, err := OpenOrders(r.Source, r.SKU)
	if err != nil {
		return nil, err
	}
	if len(orders) != 1 || orders[r.SKU] == nil {
		return nil, fmt.Errorf("%s has orders of %s: it must have those of %s alone", r.Source,
			slices.Sorted(maps.Keys(orders)), r.SKU)
	}
	return orders[r.SKU], nil
}
