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

	"sluice/admin"
)

type stockFreeze struct {
	SKU string `arg:"" name:"sku"`
}

type stockThaw struct {
	SKU string `arg:"" name:"sku"`
}

type stockAdopt struct {
	File  string `arg:"" name:"file" help:"The shop's orders, CSV (serial,user,quantity, and sku with a header) or a JSON object a line; - = standard input."`
	SKU   string `help:"Of orders that do not name theirs." placeholder:"SKU"`
	Apply bool   `help:"Do it. Without this, only what would change is shown."`
}

func (f *stockFreeze) Run(s *stockCommand) error {
	return s.one("POST", f.SKU, map[string]any{"state": "frozen"})
}

func (t *stockThaw) Run(s *stockCommand) error {
	return (&stockResume{SKU: t.SKU, Reconciled: true}).Run(s)
}

const (
	adoptAtOnce = 500              // orders of one request
	adoptWithin = 10 * time.Minute // all of them
)

func (a *stockAdopt) Run(s *stockCommand) error {
	if s.Kind == "layout" {
		return errors.New("--kind layout: orders are adopted by ledgers alone")
	}
	in := os.Stdin
	if a.File != "-" {
		file, err := os.Open(a.File)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	orders, err := readOrders(in, a.SKU)
	if err != nil {
		return fmt.Errorf("read %s: %w", a.File, err)
	}
	to, done, err := s.Where.open()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), adoptWithin)
	defer cancel()
	conflicts := 0
	for _, sku := range slices.Sorted(maps.Keys(orders)) {
		all, err := adopt(ctx, to, sku, orders[sku], a.Apply)
		if err != nil {
			return err
		}
		tellAdoption(all)
		conflicts += len(all.Conflicts)
	}
	switch {
	case conflicts > 0:
		return fmt.Errorf("%d orders contradict what the ledger knows of their serials, and were passed over", conflicts)
	case !a.Apply:
		fmt.Fprintln(os.Stderr, "sluice: nothing was changed; --apply does it, and sluice stock thaw opens the SKU then")
	}
	return nil
}

// adopt sends the orders of one SKU, some at a time, and adds up what came of it.
func adopt(ctx context.Context, to client, sku string, orders []shopOrder, apply bool) (all admin.Adoption, err error) {
	all.SKU, all.Applied = sku, apply
	for some := range slices.Chunk(orders, adoptAtOnce) {
		var done admin.Adoption
		in := map[string]any{"orders": some, "apply": apply}
		if err := to.call(ctx, "POST", "/stock/"+url.PathEscape(sku)+"/adopt", in, &done); err != nil {
			return all, fmt.Errorf("adopt orders of %s: %w", sku, err)
		}
		all.Unknown, all.Held, all.Sold, all.Returned = all.Unknown+done.Unknown, all.Held+done.Held, all.Sold+done.Sold, all.Returned+done.Returned
		all.Units, all.Stock = all.Units+done.Units, done.Stock
		all.Conflicts = append(all.Conflicts, done.Conflicts...)
	}
	return all, nil
}

func tellAdoption(a admin.Adoption) {
	verb := "would be"
	if a.Applied {
		verb = "are"
	}
	fmt.Printf("%s\t%d orders were not known, %d held, %d given back: %d units %s sold by them; %d were sold already\n",
		a.SKU, a.Unknown, a.Held, a.Returned, a.Units, verb, a.Sold)
	for _, conflict := range a.Conflicts {
		fmt.Printf("%s\tpassed over: %s\n", a.SKU, conflict)
	}
	fmt.Println(line(*a.Stock))
	if l := a.Stock.Ledger; a.Applied && l.Free < 0 || !a.Applied && l.Free+l.Held < a.Units {
		fmt.Fprintf(os.Stderr, "sluice: more of %s is sold then than there is: cancel orders at the shop, or raise the total\n", a.SKU)
	}
}
