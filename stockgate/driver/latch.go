package driver

import (
	"hash/maphash"
	"sync/atomic"
)

// latches remember which SKUs are closed. Reading takes no lock and writes nothing. Each SKU has one slot; who finds it
// taken by another SKU asks Redis, as if nothing were known.
type latches struct {
	memory int64 // ns
	seed   maphash.Seed
	slots  []atomic.Pointer[latch]
}

const latchSlots = 1 << 16

// latch says that units of a SKU cannot be had, or (taken) that some came back. It is not changed once it is in its slot, but for probing.
type latch struct {
	sku     string
	why     why
	units   int64 // so many, or more
	at      int64 // ns: when it was asked
	probing atomic.Bool
}

func newLatches(memory int64) *latches {
	return &latches{memory: memory, seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[latch], latchSlots)}
}

func (l *latches) slot(sku []byte) *atomic.Pointer[latch] {
	return &l.slots[maphash.Bytes(l.seed, sku)%latchSlots]
}

// closed tells why units of sku cannot be had at now. It reports false when Redis is to be asked: nothing is known, or
// the latch is old and nobody looks whether it is still right.
func (l *latches) closed(now int64, sku []byte, units int64) (why, bool) {
	c := l.slot(sku).Load()
	if c == nil || c.sku != string(sku) || c.why == taken || units < c.units || now-c.at > l.memory && !c.probing.Load() {
		return taken, false
	}
	return c.why, true
}

// probe is closed for whoever would ask next: of all who come after the latch is old one may look. It is then told the
// latch's why beside false, and must call probed.
func (l *latches) probe(now int64, sku string, units int64) (why, bool) {
	c := l.slot([]byte(sku)).Load()
	if c == nil || c.sku != sku || c.why == taken || units < c.units {
		return taken, false
	}
	return c.why, now-c.at <= l.memory || !c.probing.CompareAndSwap(false, true)
}

// probed ends a look.
func (l *latches) probed(sku string) {
	if c := l.slot([]byte(sku)).Load(); c != nil && c.sku == sku {
		c.probing.Store(false)
	}
}

// learn takes in what became of o, which was asked for at a time.
func (l *latches) learn(at int64, o *order) {
	slot := l.slot([]byte(o.sku))
	c := slot.Load()
	mine := c != nil && c.sku == o.sku
	switch o.why {
	case notEnough, unknown, offSale:
		if mine && c.why == taken && c.at >= at {
			return // it may have been asked before the units came back
		}
		next := &latch{sku: o.sku, why: o.why, units: o.quantity, at: at}
		if o.why != notEnough {
			next.units = 1
		}
		if mine && c.at == at && c.why == next.why {
			next.units = min(next.units, c.units)
		}
		slot.Store(next)
	case taken:
		if mine && c.units <= o.quantity && c.at < at {
			slot.Store(nil)
		}
	}
}

// forget opens sku: units came back, at the latest at now. Who asked before does not close it again.
func (l *latches) forget(now int64, sku string) {
	l.slot([]byte(sku)).Store(&latch{sku: sku, why: taken, at: now})
}
