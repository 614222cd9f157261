package stockgate

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

func TestOrderQuota_SharesCoverWhatCameBack(t *testing.T) {
	for _, c := range []struct {
		free, perUnit int64
		instances     int
		want          int64
	}{{0, 0, 3, 0}, {-1, 0, 3, 0}, {1, 0, 0, 1}, {1, 0, 3, 1}, {3, 0, 3, 1}, {4, 0, 3, 2}, {4, 2, 3, 3},
		{1 << 62, 8, 1, maxQuota}} {
		if got := share(c.free, c.perUnit, c.instances); got != c.want {
			t.Errorf("share(%d, %d, %d) = %d, want %d", c.free, c.perUnit, c.instances, got, c.want)
		}
	}
}

// returned is a stepped gate of one of so many instances, whose SKU was sold out and has n units again.
func returned(t *testing.T, n int64, instances int) (*Gate, *entry, []byte, func(int64)) {
	t.Helper()
	o := options()
	o.Instances = func() int { return instances }
	g, sku := stepped(t, o, NewMemory()), []byte("1001")
	e := addEntry(g.table, 0, sku)
	read := func(n int64) {
		e.endedBefore = e.ended.Load()
		g.poller.publishReading(0, e, reading(n))
	}
	read(0)
	if got := g.Enter(0, sku, nil); got != reject.SoldOut {
		t.Fatal(got)
	}
	read(n)
	return g, e, sku, read
}

func TestOrderQuota_UnitsThatCameBackAreTriedByThisInstancesShareAlone(t *testing.T) {
	g, _, sku, read := returned(t, 5, 2)
	enters := func(want int) {
		t.Helper()
		for i := range want {
			if got := g.Enter(0, sku, nil); got != reject.Admitted {
				t.Fatalf("try %d of %d: %v", i+1, want, got)
			}
		}
		for range 100 {
			if got := g.Enter(0, sku, nil); got != reject.Concurrency {
				t.Fatalf("after %d tries: %v", want, got)
			}
		}
	}
	enters(3) // of 5 among 2
	read(5)
	enters(0) // all three are under way
	g.Leave(sku)
	enters(0) // it may have taken one
	read(4)
	enters(0) // two of two are under way
	g.Leave(sku)
	g.Leave(sku)
	read(2)
	enters(1)
	g.Leave(sku) // in vain
	read(2)
	enters(1)
}

// The reading began before the try ended: what it found free may be what the try took.
func TestOrderQuota_TryThatEndsWhileTheStockIsReadIsNotRepeated(t *testing.T) {
	g, e, sku, _ := returned(t, 1, 1)
	if got := g.Enter(0, sku, nil); got != reject.Admitted {
		t.Fatal(got)
	}
	e.endedBefore = e.ended.Load()
	g.Leave(sku)
	g.poller.publishReading(0, e, reading(1))
	if got := g.Enter(0, sku, nil); got != reject.Concurrency {
		t.Fatal(got)
	}
	e.endedBefore = e.ended.Load()
	g.poller.publishReading(0, e, reading(1))
	if got := g.Enter(0, sku, nil); got != reject.Admitted {
		t.Fatalf("a unit is stranded: %v", got)
	}
}

func TestOrderQuota_WhatWasNeverSoldOutIsNotRationed(t *testing.T) {
	s := NewMemory()
	testkit.Check(t, s.Set(t.Context(), "1001", 1))
	o := options()
	o.Instances = func() int { return 100 }
	g := open(t, o, s)
	for range 50 {
		if got := g.Enter(o.Now(), []byte("1001"), nil); got != reject.Admitted {
			t.Fatal(got)
		}
	}
}

// A crowd at what came back, while the shop takes it: the requests at the shop are no more than the units and one
// share.
func TestOrderQuota_RushAtUnitsThatCameBackHasFewTries(t *testing.T) {
	s, sku := NewMemory(), []byte("1001")
	testkit.Check(t, s.Set(t.Context(), "1001", 0))
	o := options()
	o.Instances = func() int { return 3 }
	g := open(t, o, s)
	testkit.Eventually(t, "sold out", func() bool { return g.Enter(o.Now(), sku, nil) == reject.SoldOut })
	const units = 20
	testkit.Check(t, s.Set(t.Context(), "1001", units))
	var asked, sold atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for sold.Load() < units {
				if g.Enter(o.Now(), sku, nil) != reject.Admitted {
					continue
				}
				if asked.Add(1); s.Sell("1001", 1) {
					sold.Add(1)
				}
				g.Leave(sku)
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n > units+share(units, 0, 3) {
		t.Errorf("%d requests for %d units", n, units)
	}
	if n := g.table.Find(sku).inFlight.Load(); n != 0 {
		t.Errorf("%d in flight after all have left", n)
	}
}

func TestOrderQuota_TriesAllocateNothingAndRejectionsWriteNothing(t *testing.T) {
	g, e, sku, read := returned(t, 1, 1)
	if n := testing.AllocsPerRun(100, func() {
		g.Enter(0, sku, nil)
		g.Leave(sku)
		read(1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	g.Enter(0, sku, nil)
	before := [3]int64{e.inFlight.Load(), e.left.Load(), e.ended.Load()}
	if n := testing.AllocsPerRun(100, func() { g.Enter(0, sku, nil) }); n != 0 {
		t.Errorf("%v allocations of a rejection", n)
	}
	if after := [3]int64{e.inFlight.Load(), e.left.Load(), e.ended.Load()}; after != before {
		t.Errorf("rejections changed %v to %v", before, after)
	}
}

// A burst at a SKU that no request has asked for: all wait for its first reading, and that admits two for each unit.
func TestOrderQuota_BurstAtAFreshSKUIsBoundedByItsFirstReading(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		testkit.Check(t, s.Set(t.Context(), "1001", 10))
		o := options()
		o.PerUnit, o.Refresh = 2, time.Hour // one reading
		g := open(t, o, s)
		var admitted, busy atomic.Int64
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				switch got := g.Enter(o.Now(), []byte("1001"), nil); got {
				case reject.Admitted:
					admitted.Add(1)
					g.Leave([]byte("1001"))
				case reject.Concurrency:
					busy.Add(1)
				default:
					t.Error(got)
				}
			})
		}
		all.Wait()
		if a, b := admitted.Load(), busy.Load(); a != 20 || b != 480 {
			t.Errorf("%d admitted, %d busy; want 20 and 480", a, b)
		}
	})
}

func TestOrderQuota_DuplicateLeavesItsTryToAnother(t *testing.T) {
	server := redistest.Start(t)
	o := options()
	o.PerUnit, o.Refresh, o.SoldOutMemory = 1, time.Hour, time.Hour // one reading
	g, s := withBuyers(t, server, o)
	testkit.Check(t, s.Set(t.Context(), "one", 1))
	setUp(t, server, "SADD {one}:uids 7")
	for _, c := range []struct {
		user string
		want reject.Reason
	}{{"7", reject.Duplicate}, {"7", reject.Duplicate}, {"8", reject.Admitted}, {"9", reject.Concurrency}} {
		if got := g.Enter(o.Now(), []byte("one"), []byte(c.user)); got != c.want {
			t.Errorf("user %s: %v, want %v", c.user, got, c.want)
		}
	}
}

// Once an order has ended in vain the SKU is read again without another request.
func TestOrderQuota_UnitThatAnOrderDidNotTakeIsReadSoon(t *testing.T) {
	o := options()
	o.PerUnit = 1
	g, e := learnt(t, o, 0, []byte("1001"), reading(1))
	g.Enter(0, []byte("1001"), nil)
	g.poller.publishReading(1_000_000, e, reading(1))
	later := int64(11_000_000) // Refresh is 10 ms
	if g.poller.due(later, e) {
		t.Fatal("it is read while its one order is in flight and no request asks")
	}
	g.Leave([]byte("1001"))
	if !g.poller.due(later, e) {
		t.Error("it is not read after its order has ended")
	}
}

func TestOrderQuota_TooManyWhoWaitForFirstReadingsAreBusy(t *testing.T) {
	o := options()
	o.Wait = 10 * time.Second
	g := stepped(t, o, NewMemory())
	g.waiting.Store(maxWaiting)
	if got := g.Enter(0, []byte("1001"), nil); got != reject.Concurrency {
		t.Errorf("%v, want concurrency", got)
	}
	if n := g.waiting.Load(); n != maxWaiting {
		t.Errorf("%d wait, want %d", n, maxWaiting)
	}
}

// While there are tries, an order that comes in the very instant of a reading takes one.
func TestOrderQuota_ReadingRejectsNoOrderWhileUnitsAreFree(t *testing.T) {
	_, e, _, read := returned(t, 1_000_000, 1)
	var readings sync.WaitGroup
	stop := make(chan struct{})
	readings.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				read(1_000_000)
			}
		}
	})
	var orders sync.WaitGroup
	var rejected atomic.Int64
	for range 4 {
		orders.Go(func() {
			for range 100_000 {
				if !e.admitWithinQuota() {
					rejected.Add(1)
					continue
				}
				e.release()
			}
		})
	}
	orders.Wait()
	close(stop)
	readings.Wait()
	if n := rejected.Load(); n > 0 {
		t.Errorf("%d of 400000 orders rejected", n)
	}
}
