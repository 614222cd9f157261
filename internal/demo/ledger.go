package demo

import "fmt"

// Ledger is what the gate wrote down of a sale where it takes the units itself (gate = "reserve").
type Ledger struct {
	Total int64 // for sale in all
	Free  int64 // not taken
	Held  int64 // taken, and not decided yet
	Sold  int64

	Released int64 // orders whose units were given back
	Resolved int64 // orders that counted as sold only after the gate had asked the shop about them
}

// balance names what the gate's ledger and the shop's books disagree on. While a sale goes on they may: what is held is
// in one of them alone. Of an interrupted one only what is sold can be told.
func (r Report) balance(complain func(wrong bool, format string, args ...any)) {
	l := r.Ledger
	if l == nil {
		return
	}
	complain(l.Total != r.Shop.Units, "balance: the ledger has %d units in all, the shop %d", l.Total, r.Shop.Units)
	complain(l.Free != l.Total-l.Held-l.Sold, "balance: %d free, but total %d - held %d - sold %d", l.Free, l.Total,
		l.Held, l.Sold)
	complain(l.Sold > r.Shop.Orders, "balance: %d sold in the ledger, but the shop knows %d orders: some are lost", l.Sold,
		r.Shop.Orders)
	if r.Interrupted {
		return
	}
	complain(l.Held != 0, "balance: %d units are still held", l.Held)
	complain(r.Shop.Orders > l.Sold+l.Held, "balance: the shop knows %d orders, but the ledger %d sold and %d held",
		r.Shop.Orders, l.Sold, l.Held)
}

// Settled is what SQL says of the database that the orders were settled into, and of the shop's orders beside them.
type Settled struct {
	Sold     int64 // units of the orders that are settled as sold
	Left     int64 // units in the table of the stock
	Orders   int64 // of the shop
	Oversold int64 // orders beyond the total
	Twice    int64 // people with more than one order
	NoUnit   int64 // orders that took no unit
	NoOrder  int64 // units sold that no order took

	File string // where all of it is; "" = it is gone
}

// String is the verdict of the database, and where it can be read again; "" of none.
func (s *Settled) String() string {
	if s == nil {
		return ""
	}
	text := fmt.Sprintf("The database agrees, by SQL: %s sold, %s in stock, %s oversold, %s with two.\n", count(s.Sold),
		count(s.Left), count(s.Oversold), count(s.Twice))
	if s.File != "" {
		text += fmt.Sprintf("Ask it yourself: sqlite3 %s 'SELECT * FROM report'\n", s.File)
	}
	return text
}

// over are the shop's totals as SQL has counted them; b itself where it has not.
func (s *Settled) over(b ShopTotals) ShopTotals {
	if s != nil {
		b.Orders, b.Oversold, b.Twice = s.Orders, s.Oversold, s.Twice
	}
	return b
}

// totals are what the shop wrote down.
func (r Report) totals() ShopTotals { return r.Settled.over(r.Shop) }

// unsettled names what the database disagrees on with the ledger and the shop.
func (r Report) unsettled(complain func(wrong bool, format string, args ...any)) {
	s, l := r.Settled, r.Ledger
	if s == nil || l == nil {
		return
	}
	complain(s.NoOrder != 0, "settle: %d sold units have no order in the shop", s.NoOrder)
	complain(!r.Interrupted && s.NoUnit != 0, "settle: %d orders of the shop took no unit", s.NoUnit)
	complain(s.Sold != l.Sold, "settle: %d units sold in the database, %d in the ledger", s.Sold, l.Sold)
	complain(s.Left != l.Total-s.Sold, "settle: %d of %d units sold, but %d in the stock", s.Sold, l.Total, s.Left)
	complain(s.Orders != r.Shop.Orders, "settle: %d orders in the database, %d in the shop", s.Orders, r.Shop.Orders)
}
