package settler

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway/stores"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// CheckNew is an error where the database of a home has ever settled a SKU, or cannot tell: its ledger was lost then.
func CheckNew(ctx context.Context, c *config.Config, sku string) error {
	for _, home := range c.Settle.HomeNames() { // it may have been moved
		if err := checkNewAt(ctx, c.AtHome(home), home, sku); err != nil {
			return err
		}
	}
	return nil
}

func checkNewAt(ctx context.Context, c *config.Config, home, sku string) error {
	store, err := openDatabase(c)
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
		err = fmt.Errorf("%s was sold before, says the settlement's database %s: %w", sku, home, ledger.LostLedger(sku))
	}
	return err
}

// newest is the home whose cursor of a SKU is the newest one: a lost ledger has no mark of its home. Every home must
// answer, since the one that does not may have later orders.
func (h Homes) newest(ctx context.Context, c *config.Config, sku string) (*Settlement, settle.Cursor, error) {
	var last settle.Cursor
	newest, err := h.Named(c.Settle.HomeOf(sku))
	if err != nil {
		return nil, last, err
	}
	known := false
	for _, s := range h {
		err := s.Store.CheckSchema(ctx)
		if errors.Is(err, sqlstore.ErrSchema) && len(h) > 1 {
			continue // it has never settled anything
		}
		var at settle.Cursor
		ok := false
		if err == nil {
			at, ok, err = s.Store.Cursor(ctx, sku)
		}
		if err != nil {
			return nil, last, fmt.Errorf("home %s cannot tell what it has of %s; nothing was changed; start its database, or "+
				"use a file of the shop's orders (--from FILE): %w", s.Name(), sku, err)
		}
		known = known || ok
		if last.Position.Before(at.Position) ||
			last.Position == at.Position && last.State == settle.Moved && at.State != settle.Moved {
			newest, last = s, at
		}
	}
	name := c.Settle.HomeOf(sku)
	switch {
	case name != newest.Name():
		return nil, last, fmt.Errorf("%s was settled in %s last, and the file says %s: write it into skus of %s, restart the "+
			"settlers, and repeat", sku, newest.Name(), name, newest.Name())
	case !known:
		return nil, last, fmt.Errorf("the database of %s has never settled %s: use a file of the shop's orders (--from FILE)",
			newest.Name(), sku)
	case last.State == settle.Moved:
		return nil, last, fmt.Errorf("%s was moved out of %s, which lacks its later orders: write it into skus of the "+
			"[[settle.home]] that has it, and repeat", sku, newest.Name())
	}
	return newest, last, nil
}

// Orders are those of a SKU that are sold by its newest home, or were undecided when that last looked. What an operator
// must know of them is written to remarks.
func (h Homes) Orders(ctx context.Context, c *config.Config, sku string, remarks io.Writer) ([]admin.Order, error) {
	of, cursor, err := h.newest(ctx, c, sku)
	if err != nil {
		return nil, err
	}
	var orders []admin.Order
	undecided := 0
	err = of.Store.Orders(ctx, sku, cursor.Born, func(one settle.Record) {
		if one.Status == ledger.StatusSold || one.Status == ledger.StatusHeld {
			orders = append(orders, admin.Order{Serial: one.Serial, User: one.User, Quantity: one.Quantity})
		}
		if one.Status == ledger.StatusHeld {
			undecided++
		}
	})
	if err == nil {
		fmt.Fprintf(remarks, "sluice-settle: the database has %d orders of %s, %d of them undecided then; where no instance "+
			"knows better, these count as sold: refund those that the shop does not have\n", len(orders), sku, undecided)
	}
	return orders, err
}

// UnknownOrders are those that exist by the word of the database or of the shop, and that the ledger does not know:
// what the database has as sold, or as missing. With a query of the shop's orders, what is missing and undecided counts
// only if the shop has it, and so does what the shop alone has. The database is read first: what it has, the ledger had
// before.
func (s *Settlement) UnknownOrders(ctx context.Context, query, sku string) (orders []admin.Order, err error) {
	cursor, ok, err := s.Store.Cursor(ctx, sku)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("the database of home %s has never settled %s: use a file of the shop's orders (--from FILE)",
			s.Name(),
			stores.PrintableName(sku))
	}
	users := make(map[string]string) // of undecided orders, which the shop may have
	err = s.Store.Orders(ctx, sku, cursor.Born, func(r settle.Record) {
		switch undecided := r.Status == ledger.StatusHeld && r.Missing; {
		case undecided && query != "":
			users[r.Serial] = r.User
		case undecided, r.Status == ledger.StatusSold:
			orders = append(orders, admin.Order{Serial: r.Serial, User: r.User, Quantity: r.Quantity})
		}
	})
	if err != nil {
		return nil, err
	}
	if query != "" {
		differ, err := s.Store.CompareShop(ctx, query, sku, cursor.Born)
		if err != nil {
			return nil, err
		}
		for _, d := range differ {
			if d.Booked == 0 {
				orders = append(orders, admin.Order{Serial: d.Serial, User: users[d.Serial], Quantity: d.Shop})
			}
		}
	}
	known, err := s.Stream.Records(ctx, sku)
	unknown := orders[:0]
	for _, o := range orders {
		if _, ok := known[o.Serial]; !ok {
			unknown = append(unknown, o)
		}
	}
	return unknown, err
}
