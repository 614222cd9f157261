package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"sluice/config"
	"sluice/proxy/reject"
)

// crowded is a configuration with two routes, of which one has a place of its own.
func crowded(maxInFlight, own int) *config.Config {
	c := config.Default()
	c.Limits.Concurrency.MaxInFlight, c.Limits.Concurrency.MaxQueue = maxInFlight, 4
	c.Limits.Concurrency.QueueTimeout = time.Second
	c.Routes = []config.Route{{Name: "search", MaxInFlight: own}, {Name: "order"}}
	return c
}

func newCrowd(t *testing.T, c *config.Config) *concurrency {
	start := time.Now()
	in := newConcurrency(func() int64 { return int64(time.Since(start)) })
	in.use(c)
	t.Cleanup(in.close)
	return in
}

func TestConcurrency_RouteThatIsFullLeavesTheOthersTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowded(3, 1)
		in := newCrowd(t, c)
		search, order := in.limiterFor(c, &c.Routes[0]), in.total(c)
		if in.limiterFor(c, &c.Routes[1]) != nil {
			t.Error("a route without max_in_flight has places of its own")
		}
		if got := search.Acquire(nil, false); got != reject.Admitted {
			t.Fatal(got)
		}
		if got := search.Acquire(nil, false); got != reject.QueueTimeout {
			t.Errorf("a second search: %v, want queue_timeout", got)
		}
		for range 2 {
			if got := order.Acquire(nil, false); got != reject.Admitted {
				t.Errorf("an order beside the searches: %v", got)
			}
		}
		search.Release(0)
		order.Release(0)
		order.Release(0)
		if in.all.InFlight() != 0 || in.routes["search"].InFlight() != 0 {
			t.Errorf("%d in flight, %d of them searches; want none", in.all.InFlight(), in.routes["search"].InFlight())
		}
	})
}

func TestConcurrency_BothWaitsTogetherLastNoLongerThanOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowded(1, 1)
		in := newCrowd(t, c)
		search, order := in.limiterFor(c, &c.Routes[0]), in.total(c)
		search.Acquire(nil, false)
		time.AfterFunc(600*time.Millisecond, func() { // the route's place comes free, and another takes that of all
			search.Release(0)
			order.Acquire(nil, false)
		})
		start := time.Now()
		if got := search.Acquire(nil, false); got != reject.QueueTimeout || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want queue_timeout after 1s", got, time.Since(start))
		}
		if in.routes["search"].InFlight() != 0 {
			t.Error("the route's place was not given back")
		}
		order.Release(0)
	})
}

func TestConcurrency_ReloadFindsEverybodyWhereTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := crowded(3, 2)
		in := newCrowd(t, before)
		old := in.limiterFor(before, &before.Routes[0])
		old.Acquire(nil, false)
		old.Acquire(nil, false)
		next := crowded(3, 1)
		in.use(next)
		if got := in.limiterFor(next, &next.Routes[0]).Acquire(nil, false); got != reject.QueueTimeout {
			t.Errorf("%v: those who were in before the reload are forgotten", got)
		}
		old.Release(0)
		old.Release(0)
		if in.all.InFlight() != 0 || in.routes["search"].InFlight() != 0 {
			t.Error("who entered before the reload could not leave after it")
		}
	})
}

// The shop is silent while every place is taken: the limit falls, and a reload that switches the search off restores
// it.
func TestConcurrency_TheAdaptiveLimitIsSwitchedOnAndOffByAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowded(64, 0)
		c.Limits.Concurrency.Adaptive = true
		in := newCrowd(t, c)
		p := in.total(c)
		for range 64 {
			p.Acquire(nil, false)
		}
		time.Sleep(time.Minute) // of synctest
		if got := in.all.Max(); got != c.Limits.Concurrency.MinInFlight() {
			t.Errorf("limit %d of a silent shop, want the smallest", got)
		}
		in.use(crowded(64, 0))
		time.Sleep(time.Minute) // of synctest
		if got := in.all.Max(); got != 64 {
			t.Errorf("limit %d after adaptive was switched off, want 64", got)
		}
		in.close()
	})
}

func TestConcurrency_PlacesOfARouteAllocateNothing(t *testing.T) {
	c := crowded(8, 8)
	in := newCrowd(t, c)
	p := in.limiterFor(c, &c.Routes[0])
	if n := testing.AllocsPerRun(1000, func() { p.Acquire(nil, false); p.Release(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
