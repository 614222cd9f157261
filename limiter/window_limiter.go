package limiter

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// WindowLimiter keeps two limits about the same windows of its [Grid]: at most so many of one SKU, and so many of all
// SKUs together. A request is booked into the first window where both have room, so that both hold in every window; one
// that is rejected is charged to neither. What exceeds a window may be booked into the windows that follow, up to
// MaxAhead of them, first come first served.
//
// It promises that, whatever times its callers pass and in whatever order, no window is given out more than max times.
// Its windows are fixed, not sliding: 2·max may be admitted within an instant, at the end of one window and the
// start of the next; no stretch of Size ever sees more.
//
// Its memory is fixed at the start. Requests for made-up SKUs can neither grow it nor push a SKU out of it.
//
// It is safe for concurrent use.
type WindowLimiter struct {
	grid           grid
	maxAll, perSKU atomic.Int64
	share          atomic.Uint64
	all            allWindows
	skus           *skuSketch
	warmth         *warmth // nil = caps hold in full from the start
}

// Caps are the maxima of [WindowLimiter]. Negative ones count as 0; too large ones as the largest.
type Caps struct {
	All    int // requests of all SKUs in one window, at most 67108863; 0 = no cap
	PerSKU int // requests of one SKU in one window, at most 65535; 0 = no cap

	// SKUs fixes the memory: 64 bytes for each, rounded up to a power of two; 0 = 100000, at most 16777216.
	// It is how many SKUs may be booked in one window before false rejections of a SKU become likely.
	SKUs int

	// WarmUp is how long the caps take to grow from a tenth to the whole, for all SKUs together from the first admission
	// and for each SKU from its own, and again after 10 minutes without one; 0 = at once, at most 10 minutes.
	WarmUp time.Duration
}

// NewWindowLimiter returns one on g that admits what caps allow.
func NewWindowLimiter(g Grid, caps Caps) *WindowLimiter {
	if caps.SKUs <= 0 {
		caps.SKUs = 100_000
	}
	w := &WindowLimiter{grid: g.within(), warmth: newWarmth(caps.WarmUp)}
	w.skus = newSKUs(caps.SKUs, w.grid.carry)
	w.SetCaps(caps.All, caps.PerSKU)
	return w
}

// Successor returns one on another grid, in which nothing is booked. What is warm in w is warm in it, where both warm
// up; w must not be used any more.
func (w *WindowLimiter) Successor(g Grid, caps Caps) *WindowLimiter {
	next := NewWindowLimiter(g, caps)
	next.share.Store(w.share.Load())
	if next.warmth != nil && w.warmth != nil {
		next.skus.seed = w.skus.seed // by which SKUs are found
		next.warmth.all, next.warmth.cells = w.warmth.all, w.warmth.cells
	}
	return next
}

// SetCaps changes the maxima from now on. What is booked stays booked, and counts; what was admitted while there was
// no cap was not counted.
func (w *WindowLimiter) SetCaps(all, perSKU int) {
	w.maxAll.Store(int64(min(max(all, 0), maxBooked)))
	w.perSKU.Store(int64(min(max(perSKU, 0), maxSKUBooked)))
}

// SetShare has this instance admit its part of the caps alone, from now on. What is booked stays booked, and counts.
func (w *WindowLimiter) SetShare(s Share) { w.share.Store(uint64(s.on(w.grid))) }

// Acquire books one request for sku at or after now. It reports how long to wait for its window: 0, or up to the start
// of a window at most MaxAhead later than now's. If there is no room it reports how long it takes until there may be,
// and has consumed nothing. A request without a SKU, empty or nil, counts among all alone.
//
// A caller that was overtaken, whose now is of a window that is over by more than ringSize, is rejected.
func (w *WindowLimiter) Acquire(now int64, sku []byte) (wait time.Duration, ok bool) {
	r := w.request(sku)
	if r.all == 0 && r.perSKU == 0 {
		return 0, true
	}
	first := w.grid.number(now)
	for n := first; n <= first+w.grid.carry; n++ {
		if w.book(n, r) {
			w.warm(now, r)
			return w.grid.until(n, now), true
		}
	}
	return w.grid.until(first+1, now), false
}

// Peek books nothing: it tells whether Acquire would find no room, and then how long it takes until there may be. It
// writes nothing.
func (w *WindowLimiter) Peek(now int64, sku []byte) (wait time.Duration, full bool) {
	r := w.request(sku)
	first := w.grid.number(now)
	for n := first; n <= first+w.grid.carry; n++ {
		if w.room(n, r) {
			return 0, false
		}
	}
	return w.grid.until(first+1, now), true
}

// request is what is asked of a window for sku now.
func (w *WindowLimiter) request(sku []byte) request {
	r := request{all: w.maxAll.Load(), perSKU: w.perSKU.Load(), share: share(w.share.Load())}
	if len(sku) == 0 {
		r.perSKU = 0
	}
	if r.perSKU != 0 {
		r.hash = maphash.Bytes(w.skus.seed, sku)
	}
	return r
}

// request is what is asked of a window: a place of a SKU's and one of all, of what the caps are; 0 = no cap.
type request struct {
	hash        uint64 // of the SKU
	perSKU, all int64
	share       share
}

// book takes one place in window n of the SKU, then one of all. The first look at all keeps a full one from being
// paid for with a SKU's place that has to be given back; the second decides.
func (w *WindowLimiter) book(n int64, r request) bool {
	all := r.all
	if all != 0 {
		all = r.share.maxInWindow(n, w.grown(n, all))
		if w.all.full(n, all) {
			return false
		}
		if r.perSKU == 0 {
			return w.all.book(n, all)
		}
	}
	cell := w.skus.book(n, r.hash, r.share.maxInWindow(n, w.grownSKU(n, r)))
	if cell == nil {
		return false
	}
	if r.all == 0 || w.all.book(n, all) {
		return true
	}
	w.skus.giveBack(cell, n)
	return false
}

// room tells, by loading alone, whether book would find room in window n.
func (w *WindowLimiter) room(n int64, r request) bool {
	if r.all != 0 && w.all.full(n, r.share.maxInWindow(n, w.grown(n, r.all))) {
		return false
	}
	return r.perSKU == 0 || !w.skus.full(n, r.hash, r.share.maxInWindow(n, w.grownSKU(n, r)))
}

// grown is the cap of all in window n, of all instances together.
func (w *WindowLimiter) grown(n, most int64) int64 {
	if w.warmth == nil {
		return most
	}
	return w.warmth.grown(w.warmth.all, w.grid.begins(n), most)
}

// grownSKU is the cap of the SKU in window n, of all instances together.
func (w *WindowLimiter) grownSKU(n int64, r request) int64 {
	if w.warmth == nil {
		return r.perSKU
	}
	return w.warmth.grown(w.warmth.startOf(r.hash), w.grid.begins(n), r.perSKU)
}

// warm notes that a request was admitted.
func (w *WindowLimiter) warm(now int64, r request) {
	if w.warmth == nil {
		return
	}
	w.warmth.all.admitted(now)
	if r.perSKU != 0 {
		w.warmth.startOf(r.hash).admitted(now)
	}
}
