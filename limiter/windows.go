package limiter

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// Windows keeps two limits about the same windows: at most so many of one SKU, and so many of all SKUs together.
// A request is booked into the first window where both have room, so that both hold in every window; one that is
// refused is charged to neither. See [Window] for what a window promises.
//
// Its memory is fixed at the start. Requests for made-up SKUs can neither grow it nor push a SKU out of it.
//
// It is safe for concurrent use.
type Windows struct {
	grid   grid
	perSKU atomic.Int64
	_      cacheLine
	all    *Window
	skus   *skus
}

// Caps are the maxima of [Windows]. Negative ones count as 0; too large ones as the largest.
type Caps struct {
	All    int // requests of all SKUs in one window; 0 = no cap
	PerSKU int // requests of one SKU in one window, at most 65535; 0 = no cap

	// SKUs fixes the memory: 64 bytes for each, rounded up to a power of two; 0 = 100000, at most 16777216.
	// It is how many SKUs may be booked in one window before false refusals of a SKU become likely.
	SKUs int
}

// NewWindows returns Windows on g that admit what caps allow.
func NewWindows(g Grid, caps Caps) *Windows {
	if caps.SKUs <= 0 {
		caps.SKUs = 100_000
	}
	w := &Windows{grid: g.within(), all: NewWindow(g, 0)}
	w.skus = newSKUs(caps.SKUs, w.grid.carry)
	w.SetCaps(caps.All, caps.PerSKU)
	return w
}

// SetCaps changes the maxima from now on. What is booked stays booked, and counts; what was admitted while there was
// no cap was not counted.
func (w *Windows) SetCaps(all, perSKU int) {
	w.all.SetMax(all)
	w.perSKU.Store(int64(min(max(perSKU, 0), maxSKUBooked)))
}

// Take books one request for sku at or after now, as [Window.Take] does. A request without a SKU, empty or nil, counts
// among all alone.
func (w *Windows) Take(now int64, sku []byte) (wait time.Duration, ok bool) {
	perSKU := w.perSKU.Load()
	if perSKU == 0 || len(sku) == 0 {
		return w.all.Take(now)
	}
	all := w.all.max.Load()
	hash := maphash.Bytes(w.skus.seed, sku)
	first := w.grid.number(now)
	for n := first; n <= first+w.grid.carry; n++ {
		if w.book(n, hash, perSKU, all) {
			return w.grid.until(n, now), true
		}
	}
	return w.grid.until(first+1, now), false
}

// book takes one place in window n of the SKU, then one of all. The first look at all keeps a full one from being
// paid for with a SKU's place that has to be given back; the second decides.
func (w *Windows) book(n int64, hash uint64, perSKU, all int64) bool {
	if all != 0 && w.all.full(n, all) {
		return false
	}
	cell := w.skus.book(n, hash, perSKU)
	if cell == nil {
		return false
	}
	if all == 0 || w.all.book(n, all) {
		return true
	}
	w.skus.giveBack(cell, n)
	return false
}
