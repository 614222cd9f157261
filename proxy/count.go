package proxy

import (
	"sync/atomic"
	"time"
)

// counts is what the gate has counted, in shards: each connection writes to one of them, so that two cores
// seldom write to the same cache line. Readers add the shards up.
type counts struct {
	shards []shard
	next   atomic.Uint32 // connections are dealt out to the shards in turn
}

type shard struct {
	refused  [][numReasons]atomic.Uint64 // by route
	observed [][numReasons]atomic.Uint64
	codes    [][numCodes]atomic.Uint64 // by route and status
	took     [][numOutcomes]histogram  // by route and outcome
	decided  histogram                 // one request in decisionSample
	panics   atomic.Uint64
	_        [64]byte
}

const (
	firstCode      = 100
	numCodes       = 500
	numOutcomes    = int(Broken) + 1
	decisionSample = 64
)

var outcomeNames = [numOutcomes]string{Answered: "answered", NotSent: "not_sent", TimedOut: "timeout", Broken: "broken"}

func newCounts(shards, routes int) *counts {
	c := &counts{shards: make([]shard, shards)}
	for i := range c.shards {
		s := &c.shards[i]
		s.refused = make([][numReasons]atomic.Uint64, routes)
		s.observed = make([][numReasons]atomic.Uint64, routes)
		s.codes = make([][numCodes]atomic.Uint64, routes)
		s.took = make([][numOutcomes]histogram, routes)
	}
	return c
}

func (c *counts) shard() *shard {
	return &c.shards[int(c.next.Add(1))%len(c.shards)]
}

func (s *shard) code(route, status int) {
	if i := status - firstCode; i >= 0 && i < numCodes {
		s.codes[route][i].Add(1)
	}
}

// bounds of the histograms, in seconds: from what a refusal costs to what a shop may take.
var bounds = [...]float64{1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

type histogram struct {
	buckets [len(bounds) + 1]atomic.Uint64
	sum     atomic.Int64 // ns
}

func (h *histogram) observe(d time.Duration) {
	i := 0
	for s := d.Seconds(); i < len(bounds) && s > bounds[i]; {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// add sums h into the cumulative form that Prometheus wants.
func (h *histogram) add(to map[float64]uint64) (count uint64, sum float64) {
	for i, bound := range bounds {
		count += h.buckets[i].Load()
		to[bound] += count
	}
	count += h.buckets[len(bounds)].Load()
	return count, time.Duration(h.sum.Load()).Seconds()
}
