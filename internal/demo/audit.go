package demo

import (
	"fmt"

	"sluice/internal/load"
)

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
func (a *Audit) over(b load.Totals) load.Totals {
	if a != nil {
		b.Orders, b.Oversold, b.Twice = a.Orders, a.Oversold, a.Twice
	}
	return b
}

// totals are what the shop wrote down.
func (r Report) totals() load.Totals { return r.Audit.over(r.Shop) }

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
