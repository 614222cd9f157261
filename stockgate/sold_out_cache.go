package stockgate

import (
	"hash/maphash"
	"sync/atomic"

	"sluice/proxy/reject"
)

// soldOutSlots is how many SKUs are remembered. Each has one slot; where another SKU has it, nothing is known.
const soldOutSlots = 1 << 16

// soldOutCache remembers which SKUs cannot be bought, and when that was read. A lookup takes no lock, writes nothing,
// and allocates nothing. Memory is bounded, whatever SKUs clients invent. The cache does not know how long an entry may
// be trusted: its caller does. It is safe for concurrent use.
type soldOutCache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[soldOutEntry]
}

// soldOutEntry is immutable. Its reason is Admitted where units came back.
type soldOutEntry struct {
	sku    string
	reason reject.Reason
	units  int64 // so many, or more, cannot be had
	at     int64 // ns: when the reading began, or when units came back
}

func newSoldOutCache() *soldOutCache {
	return &soldOutCache{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[soldOutEntry], soldOutSlots)}
}

func (c *soldOutCache) slot(sku []byte) *atomic.Pointer[soldOutEntry] {
	return &c.slots[maphash.Bytes(c.seed, sku)%soldOutSlots]
}

// Lookup tells why units of sku could not be had at the last reading, and when that began (ns of the caller's clock).
// It reports false when nothing of that kind is known.
func (c *soldOutCache) Lookup(sku []byte, units int64) (reason reject.Reason, at int64, closed bool) {
	e := c.slot(sku).Load()
	if e == nil || e.sku != string(sku) || e.reason == reject.Admitted || units < e.units {
		return reject.Admitted, 0, false
	}
	return e.reason, e.at, true
}

// Close notes a reading that began at a time: units of sku cannot be had, for reason. It is ignored when units came
// back later than that. Of several quantities in one reading the least counts.
func (c *soldOutCache) Close(at int64, sku string, units int64, reason reject.Reason) {
	slot := c.slot([]byte(sku))
	for {
		before := slot.Load()
		next := &soldOutEntry{sku, reason, units, at}
		if before != nil && before.sku == sku {
			switch {
			case before.at > at, before.at == at && before.reason == reject.Admitted:
				return
			case before.at == at && before.reason == reason:
				next.units = min(units, before.units)
			}
		}
		if slot.CompareAndSwap(before, next) {
			return
		}
	}
}

// Open notes that units of sku came back at a time: readings that began before then close it no more.
func (c *soldOutCache) Open(at int64, sku string) {
	slot := c.slot([]byte(sku))
	for {
		before := slot.Load()
		if before != nil && before.sku == sku && before.at > at {
			return
		}
		if slot.CompareAndSwap(before, &soldOutEntry{sku, reject.Admitted, 0, at}) {
			return
		}
	}
}
