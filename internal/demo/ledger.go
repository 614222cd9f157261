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

// Audit is what is counted without the gateway when a sale is over: by the ledger's records, or in the database that
// they were settled into, beside the shop's orders.
type Audit struct {
	By       string // how it was counted, as the beginning of a sentence
	Sold     int64  // units of the orders that are sold
	Left     int64  // units in the stock
	Orders   int64  // of the shop
	Oversold int64  // orders beyond the total
	Twice    int64  // people with more than one order
	NoUnit   int64  // orders that took no unit
	NoOrder  int64  // units sold that no order took
	Differ   int64  // records that ledger and database do not have alike

	Proof string // further lines of text
}

// String is the verdict, and where it can be read again; "" of none.
func (a *Audit) String() string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s sold, %s in stock, %s oversold, %s with two, %s lost.\n%s", a.By, count(a.Sold),
		count(a.Left), count(a.Oversold), count(a.Twice), count(a.NoOrder), a.Proof)
}

// over are the shop's totals as they were audited; b itself where they were not.
func (a *Audit) over(b ShopTotals) ShopTotals {
	if a != nil {
		b.Orders, b.Oversold, b.Twice = a.Orders, a.Oversold, a.Twice
	}
	return b
}

// totals are what the shop wrote down.
func (r Report) totals() ShopTotals { return r.Audit.over(r.Shop) }

// audit names what the audit disagrees on with the ledger's numbers and the shop.
func (r Report) audit(complain func(wrong bool, format string, args ...any)) {
	a, l := r.Audit, r.Ledger
	if a == nil || l == nil {
		return
	}
	complain(a.NoOrder != 0, "audit: %d sold units have no order in the shop", a.NoOrder)
	complain(!r.Interrupted && a.NoUnit != 0, "audit: %d orders of the shop took no unit", a.NoUnit)
	complain(a.Sold != l.Sold, "audit: %d units sold by the records, %d by the ledger's numbers", a.Sold, l.Sold)
	complain(a.Left != l.Total-a.Sold, "audit: %d of %d units sold, but %d in the stock", a.Sold, l.Total, a.Left)
	complain(a.Orders != r.Shop.Orders, "audit: %d orders were counted, the shop has %d", a.Orders, r.Shop.Orders)
	complain(a.Differ != 0, "audit: %d records differ between ledger and database", a.Differ)
}
