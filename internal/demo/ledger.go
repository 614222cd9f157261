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
func (r Report) balance() (wrong []error) {
	if r.Ledger == nil {
		return nil
	}
	complain := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	l := r.Ledger
	complain(l.Total != r.Shop.Units, "balance: the ledger has %d units in all, the shop %d", l.Total, r.Shop.Units)
	complain(l.Free != l.Total-l.Held-l.Sold, "balance: %d free, but total %d - held %d - sold %d", l.Free, l.Total,
		l.Held, l.Sold)
	complain(l.Sold > r.Shop.Orders, "balance: %d sold in the ledger, but the shop knows %d orders: some are lost", l.Sold,
		r.Shop.Orders)
	if r.Interrupted {
		return wrong
	}
	complain(l.Held != 0, "balance: %d units are still held", l.Held)
	complain(r.Shop.Orders > l.Sold+l.Held, "balance: the shop knows %d orders, but the ledger %d sold and %d held",
		r.Shop.Orders, l.Sold, l.Held)
	return wrong
}
