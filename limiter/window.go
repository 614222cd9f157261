package limiter

import "sync/atomic"

const (
	ringSize  = 64
	maxBooked = 1<<lowBits - 1 // 67 million in a window
)

// allWindows keeps the windows of all SKUs together. Each window is one word, its number above and what is booked
// below, so that a window that is over is forgotten by being overwritten: no timer, no lock, no allocation.
type allWindows struct {
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

// book takes one place of most in window n. It loads first and writes only when there is room.
func (w *allWindows) book(n, most int64) bool {
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
func (w *allWindows) full(n, most int64) bool {
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
