package demo

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Percentiles sum up how long something took, to three significant figures.
type Percentiles struct {
	Count int64 // how many were measured; with 0, P99 means nothing
	P99   time.Duration
}

// longest is the longest time that a stopwatch tells from longer ones.
const longest = 2 * time.Minute

// stopwatch collects times. It is safe for concurrent use.
type stopwatch struct {
	mu    sync.Mutex
	times *hdrhistogram.Histogram // in microseconds
}

func newStopwatch() *stopwatch {
	return &stopwatch{times: hdrhistogram.New(1, longest.Microseconds(), 3)}
}

func (s *stopwatch) record(d time.Duration) {
	d = min(max(d, time.Microsecond), longest)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.times.RecordValue(d.Microseconds()); err != nil {
		panic("BUG: a time within bounds was not recorded: " + err.Error())
	}
}

func (s *stopwatch) percentiles() Percentiles {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Percentiles{s.times.TotalCount(), time.Duration(s.times.ValueAtPercentile(99)) * time.Microsecond}
}
