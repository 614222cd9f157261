package recreate

import (
	"context"
	"fmt"

	"sluice/internal/adminclient"
	"sluice/internal/app/stores"
	"sluice/internal/settler"
	settlement "sluice/settle"
)

// AdoptSettled sends orders to the ledger of a SKU that it does not know: those that the database of its home has as
// sold, or as missing. With a query of the shop's orders, what is missing and undecided is adopted only if the shop has
// it, and so is what the shop alone has. Without apply it prints what would change.
func AdoptSettled(ctx context.Context, to adminclient.Client, of *settler.Settlement, query, sku string, apply bool,
	by Printer) error {
	ctx, cancel := context.WithTimeout(ctx, adoptWithin)
	defer cancel()
	cursor, ok, err := of.Store.Cursor(ctx, sku)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("the database of home %s has never settled %s: adopt a file of the shop's orders", of.Name(),
			stores.PrintableName(sku))
	}
	orders, err := unknownOrders(ctx, of, query, sku, cursor.Born)
	if err != nil {
		return err
	}
	if len(orders) == 0 {
		fmt.Fprintf(by.Out, "%s\tthe ledger knows every order that the database has\n", stores.PrintableName(sku))
		return nil
	}
	all, err := adopt(ctx, to, sku, orders, adoption{apply: apply, missing: true})
	if err != nil {
		return err
	}
	by.adopted(all, true)
	if !apply {
		fmt.Fprintln(by.Err, "sluice: nothing was changed; --apply does it")
	}
	return nil
}

// unknownOrders are those that exist by the word of the database or of the shop, and that the ledger does not know. The
// database is read first: what it has, the ledger had before.
func unknownOrders(ctx context.Context, of *settler.Settlement, query, sku string, born int64) (orders []Order,
	err error) {
	users := make(map[string]string) // of undecided orders, which the shop may have
	err = of.Store.Orders(ctx, sku, born, func(r settlement.Record) {
		switch undecided := r.Status == 'H' && r.Missing; {
		case undecided && query != "":
			users[r.Serial] = r.User
		case undecided, r.Status == 'C':
			orders = append(orders, Order{Serial: r.Serial, User: r.User, Quantity: r.Quantity})
		}
	})
	if err != nil {
		return nil, err
	}
	if query != "" {
		differ, err := of.Store.CompareShop(ctx, query, sku, born)
		if err != nil {
			return nil, err
		}
		for _, d := range differ {
			if d.Booked == 0 {
				orders = append(orders, Order{Serial: d.Serial, User: users[d.Serial], Quantity: d.Shop})
			}
		}
	}
	known, err := of.Stream.Records(ctx, sku)
	unknown := orders[:0]
	for _, o := range orders {
		if _, ok := known[o.Serial]; !ok {
			unknown = append(unknown, o)
		}
	}
	return unknown, err
}
