package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"

	"sluice/admin"
)

type stockCommand struct {
	Where where  `embed:""`
	Kind  string `help:"Where both are kept: the gate's own ledgers, or the shop's own layout. Default: the ledgers, if any route reserves." enum:",ledger,layout" default:"" placeholder:"ledger|layout"`

	Get    stockGet    `cmd:"" help:"Show the stock of a SKU."`
	Set    stockSet    `cmd:"" help:"Set the stock of a SKU. A SKU without a ledger gets one, and is on sale."`
	Add    stockAdd    `cmd:"" help:"Add to the stock of a SKU; a negative number takes away."`
	List   stockList   `cmd:"" help:"Show all SKUs."`
	Pause  stockPause  `cmd:"" help:"Stop selling a SKU for now. Orders under way are settled."`
	Resume stockResume `cmd:"" help:"Sell a SKU again."`
	End    stockEnd    `cmd:"" help:"Stop selling a SKU for good: shoppers are told that the sale is over."`
	Freeze stockFreeze `cmd:"" help:"Close a ledger that may have lost orders, until somebody says that it was reconciled."`
	Adopt  stockAdopt  `cmd:"" help:"Take the orders that the shop has into the ledger. Shows what would change; --apply does it."`
	Thaw   stockThaw   `cmd:"" help:"Sell a frozen SKU again: every order that the shop has is in its ledger now. The same as resume --reconciled."`
}

type stockGet struct {
	SKU string `arg:"" name:"sku"`
}

type stockSet struct {
	SKU   string `arg:"" name:"sku"`
	Left  int64  `arg:"" name:"left" help:"Units, 0 or more: what is left in the shop's layout; of a ledger the total, with what is held and sold."`
	Limit *int64 `help:"Of a ledger: units that one person may have; 0 = no limit. Default: as it was, or stock.reserve.per_user." placeholder:"N"`
}

type stockAdd struct {
	SKU   string  `arg:"" name:"sku"`
	Delta int64   `arg:"" name:"delta"`
	Key   *string `help:"Of a ledger: a name for this addition. Said again with the same one, it is done once." placeholder:"NAME"`
}

type stockList struct {
	Limit int `default:"1000" help:"At most so many, up to 10000."`
}

type stockPause struct {
	SKU string `arg:"" name:"sku"`
}

type stockResume struct {
	SKU        string `arg:"" name:"sku"`
	Reconciled bool   `help:"It was frozen, and every order that the shop has is in its ledger now."`
}

type stockEnd struct {
	SKU string `arg:"" name:"sku"`
}

// Validate is called when the line is read; its error is one of usage.
func (l *stockList) Validate() error { return listable(l.Limit) }

// listable refuses a list that no API gives.
func listable(limit int) error {
	if limit < 1 || limit > 10_000 {
		return fmt.Errorf("--limit %d: it must be 1 to 10000", limit)
	}
	return nil
}

// Validate is called when the line is read; its error is one of usage.
func (t *stockSet) Validate() error {
	if t.Limit != nil && *t.Limit < 0 {
		return fmt.Errorf("--limit %d: it must be 0, for none, or the units that one person may have", *t.Limit)
	}
	return nil
}

// Validate is called when the line is read; its error is one of usage. A name that a script has left empty would add each time.
func (a *stockAdd) Validate() error {
	if a.Key != nil && *a.Key == "" {
		return errors.New("--key is empty: give the addition a name, or leave --key out")
	}
	return nil
}

func (g *stockGet) Run(s *stockCommand) error { return s.one("GET", g.SKU, nil) }

func (t *stockSet) Run(s *stockCommand) error {
	if t.Left < 0 {
		return fmt.Errorf("%d: a stock is 0 or more", t.Left)
	}
	change := map[string]any{"set": t.Left}
	if t.Limit != nil {
		change["limit"] = *t.Limit
	}
	return s.one("POST", t.SKU, change)
}

func (a *stockAdd) Run(s *stockCommand) error {
	if a.Key != nil {
		return s.one("POST", a.SKU, map[string]any{"add": a.Delta}, "Idempotency-Key", *a.Key)
	}
	return s.one("POST", a.SKU, map[string]any{"add": a.Delta})
}

func (p *stockPause) Run(s *stockCommand) error {
	return s.one("POST", p.SKU, map[string]any{"state": "paused"})
}

func (r *stockResume) Run(s *stockCommand) error {
	change := map[string]any{"state": "on"}
	if r.Reconciled {
		change["reconciled"] = true
	}
	return s.one("POST", r.SKU, change)
}

func (e *stockEnd) Run(s *stockCommand) error {
	return s.one("POST", e.SKU, map[string]any{"state": "ended"})
}

func (l *stockList) Run(s *stockCommand) error {
	var all struct{ Stock []admin.Stock }
	if err := s.call("GET", "", url.Values{"limit": {strconv.Itoa(l.Limit)}}, nil, &all); err != nil {
		return err
	}
	for _, one := range all.Stock {
		fmt.Println(line(one))
	}
	if len(all.Stock) == 0 {
		fmt.Fprintln(os.Stderr, "no SKU has stock")
	}
	return nil
}

// one asks about one SKU, or changes it, and shows its stock.
func (s *stockCommand) one(method, sku string, change any, header ...string) error {
	if err := sellable(sku); err != nil {
		return err
	}
	var now admin.Stock
	if err := s.call(method, "/"+segment(sku), url.Values{}, change, &now, header...); err != nil {
		return err
	}
	fmt.Println(line(now))
	return nil
}

func (s *stockCommand) call(method, path string, query url.Values, in, out any, header ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), operateWithin)
	defer cancel()
	to, done, err := s.Where.open()
	if err != nil {
		return err
	}
	defer done()
	if s.Kind != "" {
		query.Set("kind", s.Kind)
	}
	return to.call(ctx, method, "/stock"+path+"?"+query.Encode(), in, out, header...)
}

// line shows one SKU: its name and what can be bought come first, for other programs.
func line(s admin.Stock) string {
	text := fmt.Sprintf("%s\t%d", spelt(s.SKU), s.Left)
	l := s.Ledger
	if l == nil {
		if !s.OnSale {
			text += "  (not on sale)"
		}
		return text
	}
	text += fmt.Sprintf("\tfree of %d: %d held, %d sold", l.Total, l.Held, l.Sold)
	if l.Limit > 0 {
		text += fmt.Sprintf("; %d a person", l.Limit)
	}
	if !s.OnSale {
		text += "  (" + l.State + ")"
	}
	return text
}
