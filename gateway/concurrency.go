package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/config"
	"sluice/internal/periodic"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/proxy/reject"
)

// concurrency is who is inside the shop: the places of all gated routes, those of the routes that have some of their
// own, and what finds the limit where that is asked for. Counts survive a reload.
type concurrency struct {
	all      *limiter.ConcurrencyLimiter
	adaptive *limiter.Adaptive
	now      func() int64

	useMu sync.Mutex // use and setShare, one at a time
	limit config.Concurrency
	share limiter.Share // of limit.MaxInFlight, that this instance has; the zero value is all

	mu     sync.Mutex
	routes map[string]*limiter.ConcurrencyLimiter // by name; one that has gone stays for those who are in

	clock sync.WaitGroup     // of the adaptive limit
	stop  context.CancelFunc // of clock; nil = it stands
}

func newConcurrency(now func() int64) *concurrency {
	all := limiter.NewConcurrencyLimiter(0, 0)
	return &concurrency{all: all, adaptive: limiter.NewAdaptive(all), routes: map[string]*limiter.ConcurrencyLimiter{},
		now: now}
}

// use has the limits be those of c. It is called by one goroutine, as of and total are.
func (in *concurrency) use(c *config.Config) {
	limit := c.Limits.Concurrency
	in.close() // no tick between the two
	in.useMu.Lock()
	defer in.useMu.Unlock()
	in.limit = limit
	if limit.Adaptive {
		in.all.SetQueue(limit.MaxQueue)
		in.setSlots()
		var ctx context.Context
		ctx, in.stop = context.WithCancel(context.Background())
		in.clock.Go(func() {
			periodic.After(ctx, adaptEvery, func(context.Context) { in.adaptive.Tick(in.now()) })
		})
	} else {
		in.adaptive.SetBounds(0, 0)
		in.setSlots()
	}
	in.useRoutes(c)
}

// setShare has this instance have its part of the slots alone, now and after a reload. Those that are taken above it
// stay until they are free.
func (in *concurrency) setShare(s limiter.Share) {
	in.useMu.Lock()
	defer in.useMu.Unlock()
	if in.share.Rank != s.Rank || in.share.Of != s.Of {
		in.share = s
		in.setSlots()
	}
}

// setSlots has this instance have its part of the slots, but at least one: 0 would be no limit. useMu is held.
func (in *concurrency) setSlots() {
	slots := in.limit.MaxInFlight
	if s := in.share; s.Of > 0 && s.Rank < s.Of {
		slots = (slots + s.Of - 1 - s.Rank) / s.Of
	} else if s.Of > 0 {
		slots = 0 // no part
	}
	slots = max(1, slots)
	if in.limit.Adaptive {
		in.adaptive.SetBounds(in.limit.MinInFlight(), slots)
	} else {
		in.all.SetMax(slots, in.limit.MaxQueue)
	}
}

// useRoutes sets the limits of single routes.
func (in *concurrency) useRoutes(c *config.Config) {
	in.mu.Lock()
	defer in.mu.Unlock()
	limit := c.Limits.Concurrency
	for i := range c.Routes {
		r := &c.Routes[i]
		if own := in.routes[r.Name]; own != nil || r.MaxInFlight > 0 {
			own = in.routeLimiter(r.Name)
			own.SetMax(r.MaxInFlight, limit.MaxQueue)
		}
	}
}

// routeLimiter are the places of a route. Those that are new have room once they are used. mu is locked.
func (in *concurrency) routeLimiter(route string) *limiter.ConcurrencyLimiter {
	if in.routes[route] == nil {
		in.routes[route] = limiter.NewConcurrencyLimiter(0, 0)
	}
	return in.routes[route]
}

// adaptEvery is how often the adaptive limit is looked after. It changes at most every fifth time.
const adaptEvery = 20 * time.Millisecond

// close stops the clock.
func (in *concurrency) close() {
	if in.stop != nil {
		in.stop()
		in.clock.Wait()
		in.stop = nil
	}
}

// total is for routes without places of their own.
func (in *concurrency) total(c *config.Config) proxy.ConcurrencyLimiter {
	return &slots{in: in, timeout: c.Limits.Concurrency.QueueTimeout}
}

// limiterFor is for r; nil = as all.
func (in *concurrency) limiterFor(c *config.Config, r *config.Route) proxy.ConcurrencyLimiter {
	if r.MaxInFlight == 0 {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return &slots{in: in, own: in.routeLimiter(r.Name), timeout: c.Limits.Concurrency.QueueTimeout}
}

// OfRoute is the concurrency limit of r, and how large it is; nil and "" = r has none of its own.
func (in *limiters) OfRoute(c *config.Config, r *config.Route) (of proxy.ConcurrencyLimiter, bound string) {
	if r.MaxInFlight == 0 {
		return nil, ""
	}
	l := c.Limits.Concurrency
	return in.concurrency.limiterFor(c, r), fmt.Sprintf("route %s: max_in_flight %d of %d, max_queue %d, queue_timeout %s",
		r.Name, r.MaxInFlight, l.MaxInFlight, l.MaxQueue, l.QueueTimeout)
}

// slots waits for as long as the configuration says: for a place of the route first, then, within the same time, for
// one of all. Who waits for the second holds the first, so that a route that is full of its own never fills the queue
// of all.
type slots struct {
	in      *concurrency
	own     *limiter.ConcurrencyLimiter // of the route; nil = none
	timeout time.Duration
}

// Acquire implements proxy.ConcurrencyLimiter.
func (p *slots) Acquire(client limiter.Client, first bool) reject.Reason {
	timeout := p.timeout
	if p.own != nil {
		start := p.in.now()
		if verdict := p.own.Acquire(first, timeout, client); verdict != limiter.Admitted {
			return noSlot(verdict)
		}
		timeout = max(0, timeout-time.Duration(p.in.now()-start))
	}
	verdict := p.in.all.Acquire(first, timeout, client)
	if verdict != limiter.Admitted && p.own != nil {
		p.own.Release()
	}
	return noSlot(verdict)
}

// TryAcquire implements proxy.ConcurrencyLimiter.
func (p *slots) TryAcquire() bool {
	if p.own != nil && !p.own.TryAcquire() {
		return false
	}
	taken := p.in.all.TryAcquire()
	if !taken && p.own != nil {
		p.own.Release()
	}
	return taken
}

// Peek implements proxy.ConcurrencyLimiter.
func (p *slots) Peek(first bool) (full bool) {
	return p.own != nil && p.own.Peek(first) || p.in.all.Peek(first)
}

// Release implements proxy.ConcurrencyLimiter.
func (p *slots) Release(took time.Duration) {
	if took > 0 {
		p.in.adaptive.Answered(p.in.now(), took)
	}
	p.in.all.Release()
	if p.own != nil {
		p.own.Release()
	}
}

func noSlot(v limiter.Verdict) reject.Reason {
	switch v {
	case limiter.Admitted:
		return reject.Admitted
	case limiter.QueueFull:
		return reject.Concurrency
	case limiter.Gone:
		return reject.ClientGone
	}
	return reject.QueueTimeout
}

// These are of routes that have places of their own; their names are the file's.
var (
	routeInFlight = prometheus.NewDesc("sluice_route_in_flight",
		"Requests of a route that has a max_in_flight of its own, inside the shop or waiting for a place of all.",
		[]string{"route"}, nil)
	routeLimit = prometheus.NewDesc("sluice_route_in_flight_limit", "The route's max_in_flight; 0 = no cap of its own.",
		[]string{"route"}, nil)
	routeQueue = prometheus.NewDesc("sluice_route_queue_length", "Requests that wait for one of the route's own places.",
		[]string{"route"}, nil)
)

// Describe implements [prometheus.Collector].
func (in *concurrency) Describe(to chan<- *prometheus.Desc) {
	in.all.Describe(to)
	to <- routeInFlight
	to <- routeLimit
	to <- routeQueue
}

// Collect implements [prometheus.Collector].
func (in *concurrency) Collect(to chan<- prometheus.Metric) {
	in.all.Collect(to)
	in.mu.Lock()
	defer in.mu.Unlock()
	for name, own := range in.routes {
		for desc, n := range map[*prometheus.Desc]int{routeInFlight: own.InFlight(), routeLimit: own.Max(),
			routeQueue: own.Queued()} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), name)
		}
	}
}
