// Package histogram counts values in fixed memory, and shows them to Prometheus in both of its forms: as classic
// buckets, whose bounds stand in dashboards and alerts, and as a native histogram, from which a quantile is read within
// 9 % wherever it lies. It promises that to observe is a few writes of memory: no lock, no allocation, no clock.
//
// It refuses to grow: what is too small or too large for the native form falls into its first or last bucket.
package histogram

import (
	"math"
	"sync/atomic"
)

const (
	// MostBounds is how many upper bounds a Scale may have.
	MostBounds = 22

	schema    = 2 // 4 native buckets for each doubling
	perDouble = 1 << schema
	doublings = 24
	cells     = doublings*perDouble + 1 // the first is the zero bucket
)

// Scale says where the buckets of a Histogram lie. It is not changed, and may be shared.
type Scale struct {
	bounds []float64
	floor  int // the native buckets begin above 2^floor
}

// Seconds is a scale for durations. Its native buckets reach from 1 µs to 16 s. bounds are the classic upper bounds,
// at most MostBounds, rising.
func Seconds(bounds ...float64) *Scale { return scale(-20, bounds) }

// Sizes is a scale for counts. Its native buckets reach from 1 to 8 million.
func Sizes(bounds ...float64) *Scale { return scale(-1, bounds) }

func scale(floor int, bounds []float64) *Scale {
	if len(bounds) > MostBounds {
		panic("BUG: a histogram with too many bounds")
	}
	return &Scale{bounds: bounds, floor: floor}
}

// cell is the native bucket of v: 0 is the zero bucket, up to and with 2^floor; cell i lies above
// 2^(floor+(i-1)/4), up to and with 2^(floor+i/4).
func (s *Scale) cell(v float64) int {
	if !(v > 0) {
		return 0
	}
	if math.IsInf(v, 1) {
		return cells - 1
	}
	part, exponent := math.Frexp(v) // part lies in [0.5, 1)
	quarter := 0
	switch {
	case part > 0.8408964152537145:
		quarter = 4
	case part > 0.7071067811865475:
		quarter = 3
	case part > 0.5946035575013605:
		quarter = 2
	case part > 0.5:
		quarter = 1
	}
	return min(max((exponent-1-s.floor)*perDouble+quarter, 0), cells-1)
}

// Histogram counts values of one Scale. Its zero value is ready, and it is safe for concurrent use; a reader may see a
// value in its bucket and not yet in the sum. It must not be copied.
type Histogram struct {
	classic [MostBounds + 1]atomic.Uint64
	native  [cells]atomic.Uint64
	sum     atomic.Uint64 // the bits of a float64
}

// Observe counts v, in the unit of s.
func (h *Histogram) Observe(s *Scale, v float64) {
	i := 0
	for i < len(s.bounds) && v > s.bounds[i] {
		i++
	}
	h.classic[i].Add(1)
	h.native[s.cell(v)].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

// Count is how many values were observed. It reads the classic buckets, which are a quarter as many.
func (h *Histogram) Count() (n uint64) {
	for i := range h.classic {
		n += h.classic[i].Load()
	}
	return n
}
