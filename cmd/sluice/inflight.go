package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"sluice/config"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/proxy/reject"
)

// inFlight is who is inside the shop: the places of all gated routes, those of the routes that have some of their own,
// and what finds the limit where that is asked for. Counts survive a reload.
type inFlight struct {
	all      *limiter.ConcurrencyLimiter
	adaptive *limiter.Adaptive
	now      func() int64

	mu     sync.Mutex
	routes map[string]*limiter.ConcurrencyLimiter // by name; one that has gone stays for those who are in

	stop, stopped chan struct{} // of the adaptive limit's clock; nil = it stands
}

func newInFlight(now func() int64) *inFlight {
	all := limiter.NewConcurrencyLimiter(0, 0)
	return &inFlight{all: all, adaptive: limiter.NewAdaptive(all), routes: map[string]*limiter.ConcurrencyLimiter{},
		now: now}
}

// use has the limits be those of c. It is called by one goroutine, as of and total are.
func (in *inFlight) use(c *config.Config) {
	limit := c.Limits.Concurrency
	in.close() // no tick between the two
	if limit.Adaptive {
		in.all.SetQueue(limit.MaxQueue)
		in.adaptive.SetBounds(limit.MinInFlight, limit.MaxInFlight)
		in.stop, in.stopped = make(chan struct{}), make(chan struct{})
		go in.tick(in.stop, in.stopped)
	} else {
		in.adaptive.SetBounds(0, 0)
		in.all.SetMax(limit.MaxInFlight, limit.MaxQueue)
	}
	in.all.SetNewestFirst(limit.Order == "newest")
	in.useRoutes(c)
}

// useRoutes sets the limits of single routes.
func (in *inFlight) useRoutes(c *config.Config) {
	in.mu.Lock()
	defer in.mu.Unlock()
	limit := c.Limits.Concurrency
	for i := range c.Routes {
		r := &c.Routes[i]
		if own := in.routes[r.Name]; own != nil || r.MaxInFlight > 0 {
			own = in.own(r.Name)
			own.SetMax(r.MaxInFlight, limit.MaxQueue)
			own.SetNewestFirst(limit.Order == "newest")
		}
	}
}

// own are the places of a route. Those that are new have room once they are used. mu is locked.
func (in *inFlight) own(route string) *limiter.ConcurrencyLimiter {
	if in.routes[route] == nil {
		in.routes[route] = limiter.NewConcurrencyLimiter(0, 0)
	}
	return in.routes[route]
}

// adaptEvery is how often the adaptive limit is looked after. It changes at most every fifth time.
const adaptEvery = 20 * time.Millisecond

func (in *inFlight) tick(stop, stopped chan struct{}) {
	defer close(stopped)
	clock := time.NewTicker(adaptEvery)
	defer clock.Stop()
	for {
		select {
		case <-stop:
			return
		case <-clock.C:
			in.adaptive.Tick(in.now())
		}
	}
}

// close stops the clock.
func (in *inFlight) close() {
	if in.stop != nil {
		close(in.stop)
		<-in.stopped
		in.stop = nil
	}
}

// total is for routes without places of their own.
func (in *inFlight) total(c *config.Config) proxy.ConcurrencyLimiter {
	return &places{in: in, timeout: c.Limits.Concurrency.QueueTimeout}
}

// of is for r; nil = as all.
func (in *inFlight) of(c *config.Config, r *config.Route) proxy.ConcurrencyLimiter {
	if r.MaxInFlight == 0 {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return &places{in: in, own: in.own(r.Name), timeout: c.Limits.Concurrency.QueueTimeout}
}

// places waits for as long as the configuration says: for a place of the route first, then, within the same time, for
// one of all. Who waits for the second holds the first, so that a route that is full of its own never fills the queue
// of all.
type places struct {
	in      *inFlight
	own     *limiter.ConcurrencyLimiter // of the route; nil = none
	timeout time.Duration
}

// Acquire implements proxy.ConcurrencyLimiter.
func (p *places) Acquire(client proxy.Waiter) reject.Reason {
	timeout := p.timeout
	if p.own != nil {
		start := p.in.now()
		if verdict := p.own.Acquire(timeout, client); verdict != limiter.Admitted {
			return refusedPlace(verdict)
		}
		timeout = max(0, timeout-time.Duration(p.in.now()-start))
	}
	verdict := p.in.all.Acquire(timeout, client)
	if verdict != limiter.Admitted && p.own != nil {
		p.own.Release()
	}
	return refusedPlace(verdict)
}

// Peek implements proxy.ConcurrencyLimiter.
func (p *places) Peek() (full bool) {
	return p.own != nil && p.own.Peek() || p.in.all.Peek()
}

// Release implements proxy.ConcurrencyLimiter.
func (p *places) Release(took time.Duration) {
	if took > 0 {
		p.in.adaptive.Answered(p.in.now(), took)
	}
	p.in.all.Release()
	if p.own != nil {
		p.own.Release()
	}
}

func refusedPlace(v limiter.Verdict) reject.Reason {
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

// sayInFlight says in numbers what the limits inside the shop amount to.
func sayInFlight(w io.Writer, c *config.Config) {
	limit := c.Limits.Concurrency
	if limit.Adaptive {
		fmt.Fprintf(w, "adaptive  from %d to %d, by the shop's latency\n", limit.MinInFlight, limit.MaxInFlight)
	}
	for _, r := range c.Routes {
		switch {
		case r.MaxInFlight > limit.MaxInFlight:
			fmt.Fprintf(w, "warning   route %q: max_in_flight %d is more than limits.concurrency.max_in_flight "+
				"allows for all: %d\n", r.Name, r.MaxInFlight, limit.MaxInFlight)
		case r.MaxInFlight > 0:
			fmt.Fprintf(w, "in flight at most %d of route %q\n", r.MaxInFlight, r.Name)
		}
	}
	connections := c.Upstream.MaxConns - c.Upstream.MaxConns/8 // see upstream.Options
	if per := limit.MaxInFlight / max(1, len(c.Upstream.Targets)); per > connections {
		fmt.Fprintf(w, "warning   limits.concurrency.max_in_flight allows %d requests a target, but upstream.max_conns "+
			"leaves only %d connections beside those for pages: the rest are refused as no_upstream\n", per, connections)
	}
}
