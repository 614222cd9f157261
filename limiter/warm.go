package limiter

import (
	"sync/atomic"
	"time"
)

// warmth has caps begin low and grow, so that a shop whose caches are cold is not hit at once by all that it can bear
// once they are warm. From the first admission on the cap is a tenth, and grows evenly to the whole in the
// length given; it is at least 1. A SKU without admissions for rest is cold again.
//
// A SKU's start is in a cell that its hash chooses. SKUs that share a cell share its start, so that the later one may
// find itself warm; the start of all SKUs together is apart, and holds for it too.
type warmth struct {
	length int64 // nanoseconds
	all    *start
	cells  []start
}

// start is when something became warm, in nanoseconds of the caller's clock. Once warm it is written once a second.
type start struct {
	at   atomic.Int64 // 0 = cold
	last atomic.Int64 // the latest admission, to within lastError
}

const (
	maxWarmUp = 10 * time.Minute
	rest      = int64(10 * time.Minute)
	lastError = int64(time.Second)
	warmCells = 1 << 16 // 1 MiB
)

// newWarmth returns nil where there is nothing to grow.
func newWarmth(length time.Duration) *warmth {
	if length <= 0 {
		return nil
	}
	return &warmth{length: int64(min(length, maxWarmUp)), all: new(start), cells: make([]start, warmCells)}
}

// startOf is the start of the SKU that hashes to hash.
func (w *warmth) startOf(hash uint64) *start { return &w.cells[mix(hash, 0)%warmCells] }

// grown is what most has grown to at the start of a window, so that it is one number for the whole window.
func (w *warmth) grown(s *start, begins, most int64) int64 {
	age := int64(0)
	if at := s.at.Load(); at != 0 && begins-s.last.Load() <= rest {
		age = min(max(begins-at, 0), w.length)
	}
	thousandths := 100 + 900*age/w.length
	return (most*thousandths + 999) / 1000
}

// admitted notes an admission at now.
func (s *start) admitted(now int64) {
	at, last := s.at.Load(), s.last.Load()
	switch {
	case at == 0 || now-last > rest:
		if s.at.CompareAndSwap(at, max(now, 1)) {
			s.last.Store(now)
		}
	case now-last > lastError:
		s.last.Store(now)
	}
}
