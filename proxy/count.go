package proxy

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"sluice/histogram"
)

// counts is what the gate has counted, in shards: each connection writes to one of them, so that two cores
// seldom write to the same cache line. Readers add the shards up. It outlives a change of routes.
type counts struct {
	shards []shard
	next   atomic.Uint32 // connections are dealt out to the shards in turn

	mu     sync.Mutex
	routes map[string][]tally // by the route's name, then by shard; a route that has gone keeps what it counted
	names  []string           // of routes, in order
	rates  map[string][]rateTally

	seed maphash.Seed // of what keys are told apart by
}

type shard struct {
	index   int
	decided histogram.Histogram // one request in decisionSample
	loud    loudness
	panics  atomic.Uint64
	_       [64]byte
}

// rateTally is what one shard has counted of one keyed rate.
type rateTally struct {
	refused, observed atomic.Uint64
	_                 [64]byte
}

// tally is what one shard has counted of one route. With many routes the next request's is in no cache: so what a refusal
// writes stands close together, and all else elsewhere.
type tally struct {
	refused [numReasons]atomic.Uint64
	codes   [hundreds][usual]atomic.Uint64 // by status
	*slowTally
	_ [64]byte
}

// slowTally is what those write who have waited for the shop, and what hardly ever happens.
type slowTally struct {
	observed [numReasons]atomic.Uint64
	others   [hundreds][hundred - usual]atomic.Uint64 // by status
	rare     atomic.Uint64                            // all of others
	took     [numOutcomes]histogram.Histogram
	_        [64]byte
}

const (
	firstCode      = 100
	hundred        = 100
	hundreds       = 5
	numCodes       = hundreds * hundred
	usual          = 32 // of a hundred statuses: all registered ones but 451 are among its first
	numOutcomes    = int(Broken) + 1
	decisionSample = 64
)

var outcomeNames = [numOutcomes]string{Answered: "answered", NotSent: "not_sent", TimedOut: "timeout", Broken: "broken"}

func newCounts(shards int) *counts {
	c := &counts{shards: make([]shard, shards), routes: map[string][]tally{}, rates: map[string][]rateTally{}, seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].index = i
	}
	return c
}

func (c *counts) shard() *shard {
	return &c.shards[int(c.next.Add(1))%len(c.shards)]
}

// of returns the tallies of a route, one for each shard, from zero when the name is new.
func (c *counts) of(route string) []tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routes[route] == nil {
		c.list(route)
		c.routes[route] = make([]tally, len(c.shards))
		rest := make([]slowTally, len(c.shards))
		for i := range rest {
			c.routes[route][i].slowTally = &rest[i]
		}
	}
	return c.routes[route]
}

// ofRate returns the tallies of a keyed rate, likewise.
func (c *counts) ofRate(name string) []rateTally {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rates[name] == nil {
		c.rates[name] = make([]rateTally, len(c.shards))
	}
	return c.rates[name]
}

func (t *tally) code(status int) {
	if status >= firstCode && status < firstCode+numCodes {
		t.codeOf(status).Add(1)
		if status%hundred >= usual {
			t.rare.Add(1)
		}
	}
}

// codeOf is where answers of a status are counted.
func (t *tally) codeOf(status int) *atomic.Uint64 {
	class, nth := status/hundred-1, status%hundred
	if nth < usual {
		return &t.codes[class][nth]
	}
	return &t.others[class][nth-usual]
}

// scale of the histograms, in seconds: from what a refusal costs to what a shop may take.
var scale = histogram.Seconds(1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

func observe(h *histogram.Histogram, took time.Duration) { h.Observe(scale, took.Seconds()) }
