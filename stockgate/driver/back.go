package driver

import (
	"log/slog"
	"sync"
	"time"
)

// backAgain is the pause before units are given back once more, when Redis surely has not got them.
const backAgain = 200 * time.Millisecond

// giveBack brings what is owed back to Redis until the desk is closed and nothing is owed, or nobody waits for it any
// more. Only what Redis has surely not done is tried again: doing it twice would sell a unit twice.
func (d *Desk) giveBack() {
	for rest := d.rest; ; {
		orders := d.owing()
		if len(orders) == 0 {
			if rest == nil {
				return
			}
			select {
			case <-d.wake:
			case <-rest:
				rest = nil // whoever is under way still may drop: see Settle
			}
			continue
		}
		d.decision.giveBack(d.ctx, orders)
		if again := d.given(orders); len(again) > 0 && !d.owe(again) {
			return
		}
	}
}

// owing takes out what is owed.
func (d *Desk) owing() []*order {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(d.owed), mostOrders)
	orders := d.owed[:n:n]
	d.owed = d.owed[n:]
	return orders
}

// given notes how giving back ended, and returns the orders to try again.
func (d *Desk) given(orders []*order) (again []*order) {
	for _, o := range orders {
		switch o.given {
		case taken:
			d.counts.back.Add(uint64(o.quantity))
			d.latches.forget(d.o.Now(), o.sku)
		case notSent, contended:
			again = append(again, o)
		case notEnough, repeated, unknown: // there was nothing to give back to: the original says no
			d.counts.refused.Add(uint64(o.quantity))
		default: // unsure, faulty
			d.lose(o)
		}
	}
	return again
}

// owe puts orders back, after a pause. It reports false when nobody waits any more: what is owed then is lost.
func (d *Desk) owe(again []*order) bool {
	waits := pause(d.ctx, backAgain)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owed = append(again, d.owed...)
	if waits {
		return true
	}
	for _, o := range d.owed {
		d.lose(o)
	}
	d.owed = nil
	return false
}

// lose notes units that are neither sold nor for sale.
func (d *Desk) lose(o *order) {
	d.counts.lost.Add(uint64(o.quantity))
	d.o.Log.Error("units could not be given back: add them by hand, if the shop has no such order", "sku", o.sku, "units", o.quantity,
		"serial", o.serial, "err", o.err)
}

// faults says each key's trouble once.
type faults struct {
	mu   sync.Mutex
	said map[string]struct{}
}

const mostFaults = 1000 // SKUs; the rest stay unsaid

// say logs what was wrong with a SKU, unless it was said before.
func (f *faults) say(log *slog.Logger, driver, sku string, w why, err error) {
	if w != faulty {
		return // Redis' own state is told by its metrics
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, before := f.said[sku]; before || len(f.said) >= mostFaults {
		return
	}
	if f.said == nil {
		f.said = make(map[string]struct{})
	}
	f.said[sku] = struct{}{}
	log.Error("a key is not what the driver works on: its orders hear stock_error", "driver", driver, "sku", sku, "err", err)
}
