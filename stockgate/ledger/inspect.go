package ledger

import (
	"context"
	"errors"
	"fmt"
)

// Inspect reads a page in one script, so that it and the numbers belong together. most is how many entries a page has,
// about; 0 = the numbers alone.
func (r *Store) Inspect(ctx context.Context, sku string, part Part, cursor string, most int) (
	p Page, err error,
) {
	defer describe(&err, "inspect", sku)
	if err := CheckSKU(sku); err != nil {
		return p, err
	}
	reply, err := r.call(ctx,
		&scriptCall{script: "audit", sku: sku, args: []any{string(part), cursor, most}, aside: true, blind: true})
	if err != nil {
		return p, err
	}
	return pageOf(reply)
}

// InspectAll reads the numbers alone of several ledgers, at most 64, in one round trip to each server. What it finds
// comes back by position.
func (r *Store) InspectAll(ctx context.Context, skus []string) []Inspection {
	all := r.callMany(ctx, skus, func(sku string) scriptCall {
		return scriptCall{
			script: "audit",
			sku:    sku,
			args:   []any{string(allParts), firstPage, 0},
			aside:  true,
			blind:  true,
			err:    CheckSKU(sku),
		}
	})
	found := make([]Inspection, len(all))
	for i := range all {
		q := &all[i]
		if found[i].Err = q.err; q.err == nil {
			found[i].Page, found[i].Err = pageOf(q.answer)
		}
		describe(&found[i].Err, "inspect", q.sku)
	}
	return found
}

// pageOf reads what audit.lua says.
func pageOf(reply []any) (p Page, err error) {
	if len(reply) == 1 {
		return Page{Wrong: true}, nil
	}
	if len(reply) != 15 {
		return Page{}, fmt.Errorf("%d values came back for a page", len(reply))
	}
	p.Numbers, p.Next = rawOf(reply[1:8]), fmt.Sprint(reply[11])
	for _, v := range reply[8:11] {
		n, ok := v.(int64)
		if !ok {
			return Page{}, fmt.Errorf("the count %v cannot be read", v)
		}
		p.Entries += n
	}
	for i, to := range []*[]string{&p.Records, &p.Users, &p.Due} {
		list, ok := reply[12+i].([]any)
		if !ok {
			return Page{}, errors.New("a page is not a list")
		}
		for _, v := range list {
			*to = append(*to, fmt.Sprint(v))
		}
	}
	return p, nil
}

func rawOf(v []any) (n Numbers) {
	for i, to := range []*string{&n.Total, &n.Held, &n.Sold, &n.State, &n.Epoch, &n.Limit, &n.Ver} {
		*to = fmt.Sprint(v[i])
	}
	return n
}

// Page is some of what a ledger counts, and its numbers at the same moment: all as it lies in the store, unjudged.
type Page struct {
	Numbers
	Wrong   bool     // a key is of another type; then there is nothing else
	Entries int64    // how many there are in all: records, users, times
	Next    string   // cursor; firstPage when the part is at its end, "" when all is more than a page
	Records []string // serial, record, ...
	Users   []string // user, units, ...
	Due     []string // serials that a sweep looks at
}

// Numbers are a ledger's numbers as text; "" = missing.
type Numbers struct{ Total, Held, Sold, State, Epoch, Limit, Ver string }

// None reports whether there is nothing at all.
func (p *Page) None() bool { return p.Numbers == Numbers{} && !p.Wrong && p.Entries == 0 }

// Part is what a page is of.
type Part string

const (
	allParts    Part = "" // if that is not more than a page; all of it is of one moment then
	partRecords Part = "r"
	partUsers   Part = "u"
	partDue     Part = "x"
)

const (
	firstPage = "0"
	pageSize  = 256 // entries
)

// Inspection is what came of a page.
type Inspection struct {
	Page
	Err error
}
