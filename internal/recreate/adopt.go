package recreate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"time"

	"sluice/admin"
	"sluice/internal/adminclient"
	"sluice/internal/app/stores"
)

const (
	adoptAtOnce = 500              // orders of one request
	adoptWithin = 10 * time.Minute // all of them
)

// AdoptMissing sends orders to the ledger of a SKU, which takes those that it does not know, and prints what came of
// it; without apply, what would.
func AdoptMissing(ctx context.Context, to adminclient.Client, sku string, orders []Order, apply bool,
	by Printer) error {
	ctx, cancel := context.WithTimeout(ctx, adoptWithin)
	defer cancel()
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

// AdoptAll sends the orders to the ledgers of their SKUs, and prints what came of it; without apply, what would.
func AdoptAll(ctx context.Context, to adminclient.Client, orders map[string][]Order, apply bool, by Printer) error {
	ctx, cancel := context.WithTimeout(ctx, adoptWithin)
	defer cancel()
	conflicts := 0
	for _, sku := range slices.Sorted(maps.Keys(orders)) {
		all, err := adopt(ctx, to, sku, orders[sku], adoption{apply: apply})
		if err != nil {
			return err
		}
		by.adopted(all, false)
		conflicts += len(all.Conflicts)
	}
	switch {
	case conflicts > 0:
		return fmt.Errorf("%d orders contradict what the ledger knows of their serials, and were passed over", conflicts)
	case !apply:
		fmt.Fprintln(by.Err, "sluice: nothing was changed; --apply does it, and sluice stock thaw opens the SKU then")
	}
	return nil
}

// Printer is where a command prints.
type Printer struct {
	Out io.Writer
	Err io.Writer // remarks that are no result
}

// adoption says how orders are adopted.
type adoption struct {
	apply   bool // or else it is shown what would change
	missing bool // only those that the ledger does not know
}

// adopt sends the orders of one SKU, some at a time, and adds up what came of it.
func adopt(
	ctx context.Context, to adminclient.Client, sku string, orders []Order, how adoption,
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

// adopted prints what came of an adoption; missing = only of orders that the ledger does not know.
func (by Printer) adopted(a admin.Adoption, missing bool) {
	verb, already := "would be", "sold"
	if a.Applied {
		verb = "are"
	}
	if missing {
		already = "known"
	}
	fmt.Fprintf(by.Out, "%s\t%d orders were not known, %d held, %d given back: %d units %s sold by them; %d were %s "+
		"already\n",
		stores.PrintableName(a.SKU), a.Unknown, a.Held, a.Returned, a.Units, verb, a.Sold, already)
	for _, conflict := range a.Conflicts {
		fmt.Fprintf(by.Out, "%s\tpassed over: %s\n", stores.PrintableName(a.SKU), stores.PrintableName(conflict))
	}
	fmt.Fprintln(by.Out, stores.DescribeStock(*a.Stock))
	if l := a.Stock.Ledger; a.Applied && l.Free < 0 || !a.Applied && l.Free+l.Held < a.Units {
		fmt.Fprintf(by.Err,
			"sluice: the ledger has more of %s sold then than there is: refund the orders that the shop does not have any more "+
				"(sluice reservation refund), and for the rest raise the total, or cancel orders at the shop\n",
			stores.PrintableName(a.SKU))
	}
}
