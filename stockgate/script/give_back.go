package script

import (
	"time"

	"sluice/internal/periodic"
	"sluice/proxy/metrics"
)

// giveBackPause is the time before units are given back once more, when Redis certainly has not got them.
const giveBackPause = 200 * time.Millisecond

// Settle implements proxy.Orders. Units of a rejected order are given back; those of an unknown outcome stay taken.
func (r *Reserver) Settle(sku []byte, serial string, f metrics.OrderOutcome) {
	o := r.endUnderWay(string(sku), serial)
	if o != nil && r.keeper != nil {
		r.keeper.settle(o, f) // it may wait for room
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case o == nil:
	case f == metrics.OrderUnknown:
		r.counts.countUnits(o, unitsOpen)
	case f != metrics.OrderRejected || r.script.givingBack == nil:
	default:
		r.owe(o)
	}
}

// endUnderWay forgets an order that is under way; nil = it is not.
func (r *Reserver) endUnderWay(sku, serial string) *order {
	r.mu.Lock()
	defer r.mu.Unlock()
	handle := (&order{sku: sku, serial: serial}).handle()
	o := r.underWay[handle]
	delete(r.underWay, handle)
	return o
}

// owe has the units of o given back, as long as this instance runs. mu is held.
func (r *Reserver) owe(o *order) {
	if r.ctx.Err() != nil || r.closed && !r.sending || len(r.owed) >= maxGiveBack {
		r.countLost(o)
		return
	}
	r.owed = append(r.owed, o)
	if !r.givingBack {
		r.givingBack = true
		r.work.Go(r.giveBack)
	}
}

// oweTaken has the units given back that were taken for orders of a batch which are not admitted.
func (r *Reserver) oweTaken(batch []*pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range batch {
		if p.owes {
			r.owe(&p.order)
		}
	}
}

// giveBack brings what is owed back to Redis, until nothing is owed. Only what Redis has certainly not done is tried
// again: a second time would sell a unit twice. What is owed when ctx ends is lost.
func (r *Reserver) giveBack() {
	for orders := r.owing(nil); len(orders) > 0; {
		r.script.giveBack(r.ctx, r.way, orders)
		again := r.givenBack(orders)
		if len(again) > 0 {
			periodic.Pause(r.ctx, giveBackPause)
		}
		orders = r.owing(again)
	}
}

// owing adds the orders to try again to what is owed, and takes out the next batch. There is none when nothing is owed.
func (r *Reserver) owing(again []*order) []*order {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owed = append(again, r.owed...)
	if r.ctx.Err() != nil {
		for _, o := range r.owed {
			r.countLost(o)
		}
		r.owed = nil
	}
	n := min(len(r.owed), maxBatch)
	orders := r.owed[:n:n]
	r.owed = r.owed[n:]
	r.givingBack = n > 0
	return orders
}

// givenBack notes how giving back ended, and returns the orders to try again.
func (r *Reserver) givenBack(orders []*order) (again []*order) {
	for _, o := range orders {
		switch o.outcome {
		case taken:
			r.counts.countUnits(o, unitsGivenBack)
			r.soldOut.Open(r.o.Now(), o.sku)
		case notSent, busy:
			again = append(again, o)
		case soldOut: // the script says that there is nothing to give back
			r.counts.countUnits(o, unitsNotGivenBack)
		default: // unknown, failed
			r.countLost(o)
		}
	}
	return again
}

// countLost notes units that may be neither sold nor for sale.
func (r *Reserver) countLost(o *order) {
	r.counts.countUnits(o, unitsLost)
	r.o.Log.Error("units may be neither sold nor for sale: whether they were given back is not known",
		"next", "compare the shop's stock with its orders, and add units only where the stock is too low", "script",
		r.script.name, "sku", o.sku, "units", o.quantity, "serial", o.serial, "err", o.err)
}
