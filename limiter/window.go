package limiter

import (
	"sync/atomic"
	"time"
)

const (
	ringSize  = 64
	maxBooked = 1<<lowBits - 1 // 67 million in a window
)

// Window admits at most max in each window of its [Grid]. What exceeds a window may be booked into the windows that
// follow, up to MaxAhead of them, first come first served: each takes the first window that still has room.
//
// It promises that, whatever times its callers pass and in whatever order, no window is given out more than max times.
// Its windows are fixed, not sliding: 2·max may be admitted within an instant, at the end of one window and the
// start of the next; no stretch of Size ever sees more.
//
// Each window is one word, its number above and what is booked below, so that a window that is over is forgotten by
// being overwritten: no timer, no lock, no allocation. One word for a backlog that flows through windows would be
// smaller, but could not book a given window, which [WindowLimiter] needs to keep two limits about the same one.
//
// It is safe for concurrent use.
type Window struct {
	grid grid
	max  atomic.Int64
	_    cacheLine
	ring [ringSize]atomic.Uint64 // window n is in ring[n%ringSize]
	_    cacheLine
	tally
}

// tally counts windows, not requests: each is written at most once a window.
type tally struct {
	used      atomic.Uint64 // windows in which something was admitted
	saturated atomic.Uint64 // windows that were filled to their max
}

// NewWindow returns a Window that admits max (0 = no cap, at most 67108863) in each window of g.
func NewWindow(g Grid, max int) *Window {
	w := &Window{grid: g.within()}
	w.SetMax(max)
	return w
}

// SetMax changes max from now on. What is booked stays booked, and counts.
func (w *Window) SetMax(most int) {
	w.max.Store(int64(min(max(most, 0), maxBooked)))
}

// Acquire books one place at or after now. It reports how long to wait for it: 0, or up to the start of a window at
// most MaxAhead later than now's. If there is no room it reports how long it takes until there may be, and has consumed
// nothing.
//
// A caller that was overtaken, whose now is of a window that is over by more than ringSize, is rejected.
func (w *Window) Acquire(now int64) (wait time.Duration, ok bool) {
	most := w.max.Load()
	if most == 0 {
		return 0, true
	}
	first := w.grid.number(now)
	for n := first; n <= first+w.grid.carry; n++ {
		if w.book(n, most) {
			return w.grid.until(n, now), true
		}
	}
	return w.grid.until(first+1, now), false
}

// book takes one place of most in window n. It loads first and writes only when there is room.
func (w *Window) book(n, most int64) bool {
	if most <= 0 {
		return false
	}
	word := &w.ring[n%ringSize]
	for {
		old := word.Load()
		next := uint64(n)<<lowBits | 1
		switch holds := int64(old >> lowBits); {
		case holds > n:
			return false // n is over
		case holds == n:
			if int64(old&maxBooked) >= most {
				return false
			}
			next = old + 1
		}
		if word.CompareAndSwap(old, next) {
			w.tally.count(int64(next&maxBooked), most, next != old+1)
			return true
		}
	}
}

// full tells, by loading alone, that book would reject.
func (w *Window) full(n, most int64) bool {
	old := w.ring[n%ringSize].Load()
	holds := int64(old >> lowBits)
	return most <= 0 || holds > n || holds == n && int64(old&maxBooked) >= most
}

// count notes that a window was begun, or that its booked-th place of most was taken.
func (t *tally) count(booked, most int64, begun bool) {
	if begun {
		t.used.Add(1)
	}
	if booked == most {
		t.saturated.Add(1)
	}
}
