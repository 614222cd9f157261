package protocol

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

// Inspection is what came of a page.
type Inspection struct {
	Page
	Err error
}
