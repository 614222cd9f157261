package proxy

import "time"

// Sales knows when SKUs are on sale.
type Sales interface {
	// Closed tells from memory, at once, whether the schedule or an operator keeps sku from being sold at now (monotonic
	// ns): NotStarted and for how long yet, Ended, Paused; or Admitted. Where early requests may pass to the shop, they
	// are Admitted unless reserved: an order that takes stock here is never early.
	Closed(now int64, sku []byte, reserved bool) (reason Reason, wait time.Duration)
}

// Lessons is what the shop's own answers have taught.
type Lessons interface {
	// SoldOut tells from memory, at once, whether the shop has said lately that sku is sold out.
	SoldOut(now int64, sku []byte) bool

	// Learn notes that the shop says so. reserved: it says so of an order for which units were held.
	Learn(now int64, sku []byte, reserved bool)
}

// offSale asks the schedule, and what the shop has taught, at a time of the clock. Of an order that takes stock here the
// ledger is asked before: who has won hears of that first.
func (p *Proxy) offSale(r *request, now int64) (reason Reason, wait time.Duration) {
	if len(r.sku) == 0 {
		return Admitted, 0
	}
	reserved := r.route.Gate == Reserve
	if p.sales != nil {
		if reason, wait := p.sales.Closed(now, r.sku, reserved); reason != Admitted {
			// The ledger was not asked: an order of an earlier sale may be repeated, by its key. Before the start one without is new.
			r.asking = r.asking || reserved && (reason != NotStarted || len(r.key) > 0)
			return reason, wait
		}
	}
	if p.lessons != nil && !reserved && p.lessons.SoldOut(now, r.sku) {
		return SoldOut, 0
	}
	return Admitted, 0
}
