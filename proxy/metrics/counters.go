// Package metrics counts what Sluice decides and how long the upstream takes, and defines the record and the trace of a
// request. It promises that counting waits for nothing and allocates nothing: a connection writes to its own shard, and
// readers add the shards up. Rejections, the access log, the dashboard and Prometheus read the same counters, so that
// they cannot disagree.
// It does not write logs or send traces, and it does not choose which requests are logged: packages accesslog and
// tracing implement the interfaces that are defined here.
package metrics

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/proxy/reject"
	"sluice/upstream"
)

// DecisionSample says how many requests share one measurement of Shard.Decided.
const DecisionSample = 64

// Counters are all counters of one instance. They outlive reloads of the configuration. They are safe for concurrent
// use. Counters implement prometheus.Collector.
type Counters struct {
	shards  []Shard
	next    atomic.Uint32 // selects the next shard of Shard
	seed    maphash.Seed  // for the hashes of keys
	decided prometheus.Histogram
	took    *prometheus.HistogramVec // by route and outcome

	bodyMemory atomic.Int64 // bytes that request bodies hold
	skus       skuTable

	mu     sync.Mutex
	routes map[string][]RouteShard // by the route's name; a removed route keeps its counts
	names  []string                // of routes, sorted
	rates  map[string][]RateShard  // by the name of the keyed rate limit
}

// Shard is the part of the counters that one of several groups of connections writes to.
type Shard struct {
	index int // from 0

	decided prometheus.Histogram // of all shards
	panics  atomic.Uint64
	details [reject.NumCauses]atomic.Uint64
	top     topKeys
	hot     topKeys   // SKUs, by all requests for them
	skus    *skuTable // of all shards
	_       [64]byte
}

// BodyMemory is how many bytes request bodies hold. The proxy counts them there.
func (c *Counters) BodyMemory() *atomic.Int64 { return &c.bodyMemory }

// Route is the counters of one route.
type Route struct{ shards []RouteShard }

// RouteShard is what one shard counts of one route.
type RouteShard struct {
	rejected  [reject.NumReasons]atomic.Uint64
	observed  [reject.NumReasons]atomic.Uint64
	statuses  [numStatuses]atomic.Uint64 // from firstStatus on
	forwarded atomic.Uint64
	took      [upstream.NumOutcomes]prometheus.Observer // of all shards
	_         [64]byte
}

// Rate is the counters of one keyed rate limit.
type Rate struct{ shards []RateShard }

// RateShard is what one shard counts of one keyed rate limit.
type RateShard struct {
	rejected, observed atomic.Uint64
	_                  [64]byte
}

const (
	firstStatus = 100
	numStatuses = 500
)

// durations describe a histogram in seconds, from the cost of a rejection to the timeout of an upstream, in classic
// and in native buckets.
func durations(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets: []float64{
			1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2.5e-4, 5e-4,
			1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
		},
		NativeHistogramBucketFactor: 1.19, NativeHistogramZeroThreshold: 1e-6, NativeHistogramMaxBucketNumber: 100,
	}
}

// NewCounters makes counters with so many shards, at least 1. Four per processor make it unlikely that two processors
// write to the same cache line.
func NewCounters(shards int) *Counters {
	c := &Counters{
		shards: make([]Shard, shards), seed: maphash.MakeSeed(),
		routes: map[string][]RouteShard{}, rates: map[string][]RateShard{},
		decided: prometheus.NewHistogram(durations("sluice_decision_duration_seconds",
			"Time to decide about a request, measured for one request in 64.")),
		took: prometheus.NewHistogramVec(durations("sluice_http_request_duration_seconds",
			"Time from the arrival of a forwarded request to the upstream's response, by route and outcome."),
			[]string{"route", "outcome"}),
	}
	c.skus.other = make(skuCounts, shards)
	c.skus.named.Store(&map[string]skuCounts{})
	for i := range c.shards {
		c.shards[i].index = i
		c.shards[i].top.seed, c.shards[i].hot.seed, c.shards[i].skus = c.seed, c.seed, &c.skus
		c.shards[i].decided = c.decided
	}
	return c
}

// ShardOf returns the shard of a new connection that an event loop serves: loops share none. loop is its number; -1 =
// there is none.
func (c *Counters) ShardOf(loop int) *Shard {
	if loop < 0 {
		return c.Shard()
	}
	return &c.shards[loop%len(c.shards)]
}

// Shard returns the shard of a new connection with a goroutine of its own: the shards in turn.
func (c *Counters) Shard() *Shard {
	return &c.shards[int(c.next.Add(1))%len(c.shards)]
}

// Route returns the counters of a route. They start at zero for a new name and are kept for a known one.
func (c *Counters) Route(name string) Route {
	c.mu.Lock()
	defer c.mu.Unlock()
	shards := c.routes[name]
	if shards == nil {
		shards = make([]RouteShard, len(c.shards))
		for i := range shards {
			for outcome := range shards[i].took {
				shards[i].took[outcome] = c.took.WithLabelValues(name, upstream.Outcome(outcome).String())
			}
		}
		c.routes[name] = shards
		at, _ := slices.BinarySearch(c.names, name)
		c.names = slices.Insert(c.names, at, name)
	}
	return Route{shards}
}

// Rate returns the counters of a keyed rate limit. They start at zero for a new name and are kept for a known one.
func (c *Counters) Rate(name string) Rate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rates[name] == nil {
		c.rates[name] = make([]RateShard, len(c.shards))
	}
	return Rate{c.rates[name]}
}

// At returns the counters for the connections of s.
func (r Route) At(s *Shard) *RouteShard { return &r.shards[s.index] }

// At returns the counters for the connections of s.
func (r Rate) At(s *Shard) *RateShard { return &r.shards[s.index] }

// Rejected counts a rejected request and returns the new count, by which the access log samples rejections.
func (r *RouteShard) Rejected(reason reject.Reason) uint64 { return r.rejected[reason].Add(1) }

// Observed counts a request that was admitted in observe mode and would have been rejected for the reason.
func (r *RouteShard) Observed(reason reject.Reason) { r.observed[reason].Add(1) }

// Status counts an answered request by its status code. A code outside of 100 to 599 is not counted: the connection was
// closed without a response.
func (r *RouteShard) Status(code int) {
	if i := code - firstStatus; i >= 0 && i < numStatuses {
		r.statuses[i].Add(1)
	}
}

// Took counts a forwarded request by its outcome. d is the time from its arrival to the upstream's response.
// The result is the number of requests that this shard has counted so.
func (r *RouteShard) Took(outcome upstream.Outcome, d time.Duration) uint64 {
	r.took[outcome].Observe(d.Seconds())
	return r.forwarded.Add(1)
}

// Rejected counts a request that the limit rejected.
func (r *RateShard) Rejected() { r.rejected.Add(1) }

// Observed counts a request that the limit would have rejected if it were enforced.
func (r *RateShard) Observed() { r.observed.Add(1) }

// Decided counts the time from a request's arrival to the decision about it. The first request in DecisionSample calls
// it: the histogram is one for all shards.
func (s *Shard) Decided(d time.Duration) { s.decided.Observe(d.Seconds()) }

// Panic counts a panic that was caught while a request was handled.
func (s *Shard) Panic() { s.panics.Add(1) }

// Detail counts a rejection that has a cause more exact than its reason.
func (s *Shard) Detail(cause reject.Cause) {
	if cause != reject.NoCause {
		s.details[cause].Add(1)
	}
}
