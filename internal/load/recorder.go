package load

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Times sum up how long something took.
type Times struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// Seconds is a duration in seconds, as it is shown.
func Seconds(d time.Duration) float64 { return float64(d.Round(time.Millisecond)) / 1e9 }

// Stopwatch collects times. It is safe for concurrent use.
type Stopwatch struct {
	mu    sync.Mutex
	times *hdrhistogram.Histogram // microseconds
}

// NewStopwatch returns one that tells times up to two minutes apart, to three figures.
func NewStopwatch() *Stopwatch { return &Stopwatch{times: hdrhistogram.New(1, 120e6, 3)} }

// Observe takes one in.
func (w *Stopwatch) Observe(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.times.RecordValue(min(max(d.Microseconds(), 1), 120e6)) // within its bounds
}

// Times are those so far.
func (w *Stopwatch) Times() Times {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := func(p float64) float64 { return float64(w.times.ValueAtPercentile(p)) / 1e3 }
	return Times{Count: w.times.TotalCount(), P50: at(50), P99: at(99), Max: float64(w.times.Max()) / 1e3}
}

// Mean is the time that one took on the average.
func (w *Stopwatch) Mean() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.times.Mean() * 1e3)
}

// Together returns a stopwatch of the times of several.
func Together(all ...*Stopwatch) *Stopwatch {
	sum := NewStopwatch()
	for _, w := range all {
		w.mu.Lock()
		sum.times.Merge(w.times)
		w.mu.Unlock()
	}
	return sum
}

// Slice is what a series tells apart.
const Slice = 10 * time.Millisecond

// Series counts events in slices of time. It is safe for concurrent use; what comes after its end is counted in its
// last.
type Series []atomic.Int32

// newSeries returns one of a length.
func newSeries(length time.Duration) Series { return make(Series, length/Slice+1) }

// Count counts an event.
func (s Series) Count(at time.Duration) { s[min(max(int(at/Slice), 0), len(s)-1)].Add(1) }

// Peak is the most in any n slices that follow each other, but for the last one of the series.
func (s Series) Peak(n int) (most int64) {
	sum := int64(0)
	for i := range len(s) - 1 {
		if sum += int64(s[i].Load()); i >= n {
			sum -= int64(s[i-n].Load())
		}
		most = max(most, sum)
	}
	return most
}

// Sums gives the counts of n slices each, up to a time.
func (s Series) Sums(n int, until time.Duration) (all []int64) {
	last := min(int(until/Slice)+1, len(s))
	for from := 0; from < last; from += n {
		sum := int64(0)
		for i := from; i < min(from+n, last); i++ {
			sum += int64(s[i].Load())
		}
		all = append(all, sum)
	}
	return all
}
