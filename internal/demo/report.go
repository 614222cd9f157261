package demo

import (
	"time"

	"sluice/internal/load"
)

// Report tells what became of a sale: what the crowd saw and what the shop wrote down, counted apart. Each press
// and each shopper is counted exactly once.
type Report struct {
	Gated       bool // the crowd came in elsewhere than at the shop itself
	Interrupted bool // ended early, and told so far
	Took        time.Duration
	Waits       bool // orders wait in the gateway until the shop has room

	Shoppers    int64
	load.Counts // what they did and heard; Requests are presses of the button

	Answer load.Times // presses that were answered, from sending to the whole answer; all of it on one machine

	Sure load.Times // from the start until a buyer was told of the order, or that it is accepted

	Shop   load.Totals
	Ledger *load.Ledger // of Sluice; nil = the shop takes the units itself
	Audit  *Audit       // nil = there is none, or not yet
	Room   *RoomReport
}

// Failed counts the presses without an answer that tells what happened.
func (r Report) Failed() int64 { return load.Sum(r.Unknown) + r.Broken + r.Unanswered + r.Overloaded }

// trying is how many shoppers have not gone home yet.
func (r Report) trying() int64 {
	left := r.Shoppers
	for _, n := range r.Home {
		left -= n
	}
	return left
}

// underWay is how many presses have neither an answer nor failed yet.
func (r Report) underWay() int64 {
	return r.Requests - r.Admitted - r.Accepted - load.Sum(r.Rejected) - load.Sum(r.Unknown) - r.Broken - r.Unanswered
}

// Err names every promise that the sale broke, nil if there is none: a unit sold twice, a shopper who got two, an
// order number that the shop does not know, an order that was sent twice, books that do not balance, or counts that do
// not add up.
func (r Report) Err() error {
	var broken load.Complaints
	complain := broken.Add
	shop := r.totals()
	complain(shop.Oversold != 0, "oversold %d: %d orders for %d units", shop.Oversold, shop.Orders, shop.Units)
	complain(shop.Twice != 0, "sold twice: %d shoppers have more than one order", shop.Twice)
	complain(r.Shop.Remade != 0, "made twice: %d orders came to the shop again when it had them", r.Shop.Remade)
	complain(!r.Waits && r.Shop.Again != 0, "sent twice: %d orders came to the shop more than once", r.Shop.Again)
	told := r.Home[load.Bought] + r.Home[load.HadOne]
	complain(told > r.Shop.Orders, "lost orders: %d shoppers were told that they bought, the shop knows %d orders", told,
		r.Shop.Orders)
	if l := r.Ledger; l != nil {
		broken.Balance(*l, r.Shop, r.Interrupted)
		complain(!r.Interrupted && l.Held != 0, "balance: %d units are still held", l.Held)
	}
	r.audit(complain)
	if r.Room != nil {
		r.Room.check(complain, r.Interrupted)
	}
	complain(r.Room == nil && r.underWay() != 0,
		"count presses: asked %d, but admitted %d + accepted %d + rejected %d + failed %d", r.Requests, r.Admitted,
		r.Accepted, load.Sum(r.Rejected), r.Failed())
	complain(r.trying() != 0, "count shoppers: %d of %d are not accounted for", r.trying(), r.Shoppers)
	return broken.Err()
}
