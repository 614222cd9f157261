// Package recreate adopts orders that a shop has into ledgers, and makes ledgers again that Redis has lost, both by the
// control API. It does not decide which orders a ledger takes: the ledger does.
package recreate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/adminclient"
	"sluice/internal/app/stores"
	"sluice/internal/periodic"
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

// Newest is the home whose cursor of the SKU is the newest one: a lost ledger has no mark of its home. Every home must
// answer, since the one that does not may have later orders.
func (r *Recreation) Newest(ctx context.Context, homes settler.Homes, c *config.Config) (*settler.Settlement, error) {
	newest, err := homes.Named(c.Settle.HomeOf(r.SKU))
	if err != nil {
		return nil, err
	}
	var last settlement.Cursor
	for _, s := range homes {
		err := s.Store.CheckSchema(ctx)
		if errors.Is(err, sqlstore.ErrSchema) && len(homes) > 1 {
			continue // it has never settled anything
		}
		var at settlement.Cursor
		if err == nil {
			at, _, err = s.Store.Cursor(ctx, r.SKU)
		}
		if err != nil {
			return nil, fmt.Errorf("home %s cannot tell what it has of %s; nothing was changed; start its database, or adopt a "+
				"file of the shop's orders: %w", s.Name(), r.SKU, err)
		}
		if last.Position.Before(at.Position) ||
			last.Position == at.Position && last.State == settlement.Moved && at.State != settlement.Moved {
			newest, last = s, at
		}
	}
	if name := c.Settle.HomeOf(r.SKU); name != newest.Name() {
		return nil, fmt.Errorf("%s was settled in %s last, and the file says %s: write it into skus of %s, restart the "+
			"settlers, and repeat", r.SKU, newest.Name(), name, newest.Name())
	}
	return newest, nil
}

// Settled are the orders of a settlement's database that are sold, or were undecided when it last looked.
func (r *Recreation) Settled(ctx context.Context, of *settler.Settlement, database string, by Printer) (
	orders []Order, err error,
) {
	cursor, ok, err := of.Store.Cursor(ctx, r.SKU)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("the database of %s has never settled %s: adopt a file of the shop's orders",
			database, r.SKU)
	}
	if cursor.State == settlement.Moved {
		return nil, fmt.Errorf("%s was moved out of %s, which lacks its later orders: write it into skus of the "+
			"[[settle.home]] that has it, and repeat", r.SKU, database)
	}
	undecided := 0
	err = of.Store.Orders(ctx, r.SKU, cursor.Born, func(one settlement.Record) {
		if one.Status == 'C' || one.Status == 'H' {
			orders = append(orders, Order{Serial: one.Serial, User: one.User, Quantity: one.Quantity})
		}
		if one.Status == 'H' {
			undecided++
		}
	})
	if err == nil {
		fmt.Fprintf(by.Err, "sluice: the database has %d orders of %s, %d of them undecided then; where no instance "+
			"knows better, these count as sold: refund those that the shop does not have\n", len(orders), r.SKU, undecided)
	}
	return orders, err
}

// KnownToSettlement reports that the settlement's database of c knows a SKU that has no ledger. Where it cannot be
// asked, that is an error: the ledger may have been lost.
func KnownToSettlement(ctx context.Context, to adminclient.Client, c *config.Config, sku string) error {
	err := to.Call(ctx, "GET", "/stock/"+url.PathEscape(sku)+"?kind=ledger", nil, new(admin.Stock))
	if !errors.Is(err, adminclient.ErrNotFound) {
		return nil // it has a ledger, or the change says what is wrong
	}
	for _, home := range c.Settle.HomeNames() { // it may have been moved
		if err := knownAt(ctx, c.AtHome(home), home, sku); err != nil {
			return err
		}
	}
	return nil
}

// knownAt is an error if the database of a home knows a SKU, or cannot tell.
func knownAt(ctx context.Context, c *config.Config, home, sku string) error {
	store, err := settler.OpenStore(c)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.CheckSchema(ctx); errors.Is(err, sqlstore.ErrSchema) {
		return nil // it has never settled anything
	} else if err != nil {
		return fmt.Errorf("%s has no ledger, and the settlement's database %s cannot tell whether it had one; start the "+
			"database, or pass --admin: the gateway does not ask it: %w", sku, home, err)
	}
	_, ok, err := store.Cursor(ctx, sku)
	if err == nil && ok {
		err = fmt.Errorf("%s was sold before, says the settlement's database %s: %w", sku, home, protocol.LostLedger(sku))
	}
	return err
}
