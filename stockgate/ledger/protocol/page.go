package protocol

import (
	"context"
)

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
	AllParts    Part = "" // if that is not more than a page; all of it is of one moment then
	PartRecords Part = "r"
	PartUsers   Part = "u"
	PartDue     Part = "x"
)

const (
	FirstPage = "0"
	PageSize  = 256 // entries
)

// Inspectable is a store whose ledgers can be audited: a Redis or a Memory. most is how many entries a page has, about;
// 0 = the numbers alone.
type Inspectable interface {
	Inspect(ctx context.Context, sku string, p Part, cursor string, most int) (Page, error)

	// inspectAll reads the numbers alone of several ledgers, at most 64. What it finds comes back by position.
	InspectAll(ctx context.Context, skus []string) []Inspection
}

// Inspection is what came of a page.
type Inspection struct {
	Page
	Err error
}
