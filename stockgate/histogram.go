package stockgate

import (
	"math"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// histogram counts values in buckets. It is safe for concurrent use; a reader may see a value in its bucket
// and not yet in the sum. The bounds are passed in: an array without pointers needs no constructor.
type histogram struct {
	buckets [maxBounds + 1]atomic.Uint64
	sum     atomic.Uint64 // the bits of a float64
}

const maxBounds = 12

// durations are the upper bounds for the time of a round trip, in seconds.
func durations() [maxBounds]float64 {
	return [maxBounds]float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 500e-3}
}

// sizes are the upper bounds for the commands of a round trip.
func sizes() [maxBounds]float64 {
	return [maxBounds]float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024}
}

func (h *histogram) observe(bounds [maxBounds]float64, v float64) {
	i := 0
	for i < maxBounds && v > bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

func (h *histogram) count() uint64 {
	n := uint64(0)
	for i := range h.buckets {
		n += h.buckets[i].Load()
	}
	return n
}

func (h *histogram) metric(d *prometheus.Desc, bounds [maxBounds]float64, labels ...string) prometheus.Metric {
	cumulative := make(map[float64]uint64, maxBounds)
	n := uint64(0)
	for i, bound := range bounds {
		n += h.buckets[i].Load()
		cumulative[bound] = n
	}
	n += h.buckets[maxBounds].Load()
	return prometheus.MustNewConstHistogram(d, n, math.Float64frombits(h.sum.Load()), cumulative, labels...)
}
