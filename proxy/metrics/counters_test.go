package metrics

import (
	"testing"
	"time"

	"sluice/proxy/reject"
	"sluice/upstream"
)

func TestRouteShard_CountsEachStatusByItself(t *testing.T) {
	c := NewCounters(1)
	r := c.Route("order").At(c.Shard())
	for code := -1; code <= 1000; code++ {
		r.Status(code)
	}
	for i := range r.statuses {
		if n := r.statuses[i].Load(); n != 1 {
			t.Errorf("%d was counted %d times", firstStatus+i, n)
		}
	}
	if n := c.Traffic().Requests; n != numStatuses {
		t.Errorf("%d answers, want %d", n, numStatuses)
	}
}

func TestCounters_RouteKeepsItsCountsAcrossReloads(t *testing.T) {
	c := NewCounters(2)
	s := c.Shard()
	c.Route("order").At(s).Rejected(reject.SoldOut)
	c.Rate("per-ip").At(s).Rejected()
	if n := c.Route("order").At(s).Rejected(reject.SoldOut); n != 2 {
		t.Errorf("the second rejection has the number %d", n)
	}
	if n := c.Route("other").At(s).Rejected(reject.SoldOut); n != 1 {
		t.Errorf("the first rejection of another route has the number %d", n)
	}
	if rejected, _ := sumRate(c.rates["per-ip"]); rejected != 1 {
		t.Errorf("the rate has %d rejections", rejected)
	}
}

func TestCounters_ShardsAreDealtOutInTurn(t *testing.T) {
	c := NewCounters(3)
	seen := map[int]int{}
	for range 9 {
		seen[c.Shard().index]++
	}
	if len(seen) != 3 || seen[0] != 3 || seen[1] != 3 || seen[2] != 3 {
		t.Errorf("9 connections share the shards as %v", seen)
	}
}

func TestCounters_LoopsShareNoShard(t *testing.T) {
	c := NewCounters(4)
	first, second, again := c.ShardOf(0), c.ShardOf(1), c.ShardOf(0)
	if first != again || first == second {
		t.Error("a loop has the shard of another one, or none of its own")
	}
	if a, b := c.ShardOf(-1), c.ShardOf(-1); a == b {
		t.Error("connections without a loop do not get the shards in turn")
	}
}

func TestCounters_TotalsAddUpRoutesAndShards(t *testing.T) {
	c := NewCounters(2)
	for range 2 {
		s := c.Shard()
		c.Route("a").At(s).Rejected(reject.SoldOut)
		c.Route("b").At(s).Rejected(reject.SoldOut)
		c.Route("b").At(s).Observed(reject.Window)
		c.Route("b").At(s).Took(upstream.Broken, time.Second)
	}
	want := Totals{Forwarded: 2}
	want.Rejected[reject.SoldOut] = 4
	if got := c.Totals(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCounters_CountingDoesNotAllocate(t *testing.T) {
	c := NewCounters(2)
	s := c.Shard()
	route, rate := c.Route("order"), c.Rate("per-ip")
	if n := testing.AllocsPerRun(100, func() {
		r := route.At(s)
		r.Rejected(reject.SoldOut)
		r.Observed(reject.Window)
		r.Status(409)
		r.Status(451)
		r.Took(upstream.Answered, time.Millisecond)
		rate.At(s).Rejected()
		rate.At(s).Observed()
		s.Decided(time.Microsecond)
		s.Detail(reject.UserMissing)
		s.Panic()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRouteShard_Rejected(b *testing.B) {
	c := NewCounters(8)
	route := c.Route("order")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		r := route.At(c.Shard())
		for pb.Next() {
			r.Rejected(reject.SoldOut)
			r.Status(409)
		}
	})
}
