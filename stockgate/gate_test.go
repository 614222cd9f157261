package stockgate

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/layout"
)

func TestGate_SaysWhatTheStockSays(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		testkit.Check(t, s.Set(t.Context(), "full", 3))
		testkit.Check(t, s.Set(t.Context(), "empty", 0))
		o := options()
		g := open(t, o, s)
		for sku, want := range map[string]reject.Reason{"full": reject.Admitted, "empty": reject.SoldOut,
			"none": reject.UnknownSKU} {
			if got := g.Closed(o.Now(), []byte(sku)); got != reject.Admitted {
				t.Errorf("closed %q, of which nothing is known: %v", sku, got)
			}
			if got := g.Enter(o.Now(), []byte(sku), nil); got != want {
				t.Errorf("enter %q: %v, want %v", sku, got, want)
			}
			testkit.Eventually(t, sku+" is read", func() bool { return g.Closed(o.Now(), []byte(sku)) == want })
		}
	})
}

// A SKU that was read decides at once, as Enter does, and counts who is admitted; another one has to be entered.
func TestGate_DecidesAtOnceWhereTheStockIsRead(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		testkit.Check(t, s.Set(t.Context(), "full", 1))
		testkit.Check(t, s.Set(t.Context(), "empty", 0))
		o := options()
		o.PerUnit = 1
		g := open(t, o, s)
		for sku, want := range map[string]reject.Reason{"full": reject.Admitted, "empty": reject.SoldOut} {
			if _, known := g.EnterAtOnce(o.Now(), []byte(sku), nil); known {
				t.Errorf("%s was decided at once before it was read", sku)
			}
			left(g, []byte(sku), g.Enter(o.Now(), []byte(sku), nil))
			testkit.Eventually(t, sku+" is decided at once", func() bool {
				got, known := g.EnterAtOnce(o.Now(), []byte(sku), nil)
				return known && got == want
			})
		}
		testkit.Eventually(t, "the unit has its order", func() bool {
			got, known := g.EnterAtOnce(o.Now(), []byte("full"), nil)
			return known && got == reject.Concurrency
		})
	})
}

func TestGate_LastUnitClosesAndRestockReopens(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		sku := []byte("1001")
		testkit.Check(t, s.Set(t.Context(), "1001", 1))
		o := options()
		g := open(t, o, s)
		if got := g.Enter(o.Now(), sku, nil); got != reject.Admitted {
			t.Fatalf("enter with one left: %v", got)
		}
		testkit.Must[int64](t)(s.Add(t.Context(), "1001", -1))
		g.Leave(sku)
		testkit.Eventually(t, "closed", func() bool { return g.Closed(o.Now(), sku) == reject.SoldOut })
		testkit.Must[int64](t)(s.Add(t.Context(), "1001", 1))
		testkit.Eventually(t, "open again", func() bool { return g.Closed(o.Now(), sku) == reject.Admitted })
		if got := g.Enter(o.Now(), sku, nil); got != reject.Admitted {
			t.Fatalf("enter after restock: %v", got)
		}
	})
}

func TestGate_UnknownSKUMayBeAllowed(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		o := options()
		o.AllowUnknown = true
		g := open(t, o, s)
		for range 3 {
			if got := g.Enter(o.Now(), []byte("none"), nil); got != reject.Admitted {
				t.Fatalf("enter: %v", got)
			}
		}
	})
}

func TestGate_PerUnitBoundsWhatIsInFlight(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		sku := []byte("1001")
		testkit.Check(t, s.Set(t.Context(), "1001", 3))
		o := options()
		o.PerUnit = 2
		g := open(t, o, s)
		for i := range 6 {
			if got := g.Enter(o.Now(), sku, nil); got != reject.Admitted {
				t.Fatalf("enter %d of 6: %v", i+1, got)
			}
		}
		if got := g.Enter(o.Now(), sku, nil); got != reject.Concurrency {
			t.Fatalf("enter 7 of 6: %v", got)
		}
		g.Leave(sku)
		testkit.Eventually(t, "a reading that began after one left", func() bool {
			return g.Enter(o.Now(), sku, nil) == reject.Admitted
		})
		if got := g.Enter(o.Now(), sku, nil); got != reject.Concurrency {
			t.Fatalf("enter 7 of 6 after one left: %v", got)
		}
	})
}

// The concurrent form of the law above: in flight never exceeds the cap, and all places are given back.
func TestGate_PerUnitHoldsUnderARush(t *testing.T) {
	s := NewMemory()
	sku := []byte("1001")
	testkit.Check(t, s.Set(t.Context(), "1001", 5))
	o := options()
	o.PerUnit = 2
	g := open(t, o, s)
	var inFlight, most atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				if g.Enter(o.Now(), sku, nil) != reject.Admitted {
					continue
				}
				n := inFlight.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				inFlight.Add(-1)
				g.Leave(sku)
			}
		})
	}
	wg.Wait()
	if most.Load() > 10 || most.Load() == 0 {
		t.Fatalf("%d in flight, the cap is 10", most.Load())
	}
	if n := g.table.Find(sku).inFlight.Load(); n != 0 {
		t.Fatalf("%d in flight after all have left", n)
	}
}

func TestGate_LeaveWithoutEnterDoesNotWidenTheCap(t *testing.T) {
	s := NewMemory()
	sku := []byte("1001")
	testkit.Check(t, s.Set(t.Context(), "1001", 1))
	o := options()
	o.PerUnit = 1
	g := open(t, o, s)
	g.Leave(sku)
	g.Enter(o.Now(), sku, nil)
	g.Leave(sku)
	g.Leave(sku)
	testkit.Eventually(t, "the next reading", func() bool { return g.Enter(o.Now(), sku, nil) == reject.Admitted })
	if got := g.Enter(o.Now(), sku, nil); got != reject.Concurrency {
		t.Fatalf("second: %v", got)
	}
}

func TestGate_SoldOutSKUCostsRedisNothingHoweverManyAsk(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	sku := []byte("1001")
	testkit.Check(t, s.Set(t.Context(), "1001", 0))
	o := options()
	o.Refresh, o.SoldOutMemory = time.Hour, time.Hour // the poller stands still
	g := open(t, o, s)
	if got := g.Enter(o.Now(), sku, nil); got != reject.SoldOut {
		t.Fatalf("first look: %v", got)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25_000 {
				if g.Closed(o.Now(), sku) != reject.SoldOut || g.Enter(o.Now(), sku, nil) != reject.SoldOut {
					t.Error("a sold-out SKU was open")
					return
				}
			}
		})
	}
	wg.Wait()
	if n := server.Calls("get"); n != 1 {
		t.Fatalf("200,000 asks and the first look: %d GETs, want 1", n)
	}
}

func TestGate_EachTurnReadsEachSKUOnceWhateverTheTraffic(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	o := options()
	now := int64(0)
	o.Now = func() int64 { return now }
	g := stepped(t, o, s)
	for i := range 3 {
		testkit.Check(t, s.Set(t.Context(), string(name(i)), 10))
		firstLook(t, g, now, name(i))
	}
	mgets, gets := server.Calls("mget"), server.Calls("get")
	for range 7 {
		now += int64(10 * time.Millisecond)
		for i := range 3 {
			for range 1000 {
				if got := g.Enter(now, name(i), nil); got != reject.Admitted {
					t.Fatalf("enter: %v", got)
				}
			}
		}
		g.poller.work(t.Context(), now)
	}
	if m, n := server.Calls("mget")-mgets, server.Calls("get")-gets; m != 7 || n != 0 {
		t.Fatalf("7 turns over 3 SKUs took %d MGETs and %d GETs, want 7 and none", m, n)
	}
}

func TestPoller_ReadsNothingWithoutRequests(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	o := options()
	now := int64(0)
	o.Now = func() int64 { return now }
	g := stepped(t, o, s)
	testkit.Check(t, s.Set(t.Context(), "1001", 10))
	firstLook(t, g, now, []byte("1001"))
	now += idleAfter + 1
	before := server.Calls("get")
	for range 100 {
		g.poller.work(t.Context(), now)
		now += int64(250 * time.Millisecond)
	}
	if n := server.Calls("get") - before; n != 0 {
		t.Fatalf("an idle gate read %d times", n)
	}
	if n := server.Calls("ping"); n == 0 || n > 26 {
		t.Fatalf("25 s of idleness took %d pings", n)
	}
	if n := g.table.Len(); n != 0 {
		t.Fatalf("an idle gate remembers %d SKUs", n)
	}
}

func TestGate_IdleSKUIsLookedAtAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewMemory()
		testkit.Check(t, s.Set(t.Context(), "1001", 0))
		o := options()
		o.SoldOutMemory = time.Hour
		g := open(t, o, s)
		if got := g.Enter(o.Now(), []byte("1001"), nil); got != reject.SoldOut {
			t.Fatalf("enter: %v", got)
		}
		time.Sleep(7 * time.Second)
		testkit.Check(t, s.Set(t.Context(), "1001", 1))
		if got := g.Enter(o.Now(), []byte("1001"), nil); got != reject.Admitted {
			t.Fatalf("enter after a pause and a restock: %v", got)
		}
	})
}

func TestGate_RestockReopensWithinSoldOutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewMemory()
		sku := []byte("1001")
		testkit.Check(t, s.Set(t.Context(), "1001", 0))
		o := options()
		g := open(t, o, s)
		g.Enter(o.Now(), sku, nil)
		testkit.Check(t, s.Set(t.Context(), "1001", 1))
		for range 100 { // a crowd that keeps asking must not keep it closed
			g.Closed(o.Now(), sku)
			time.Sleep(10 * time.Millisecond)
		}
		if got := g.Closed(o.Now(), sku); got != reject.Admitted {
			t.Fatalf("closed a second after the restock: %v", got)
		}
	})
}

// stepped returns a gate whose poller works only when the test says so.
func stepped(t testing.TB, o Options, src Source) *Gate {
	t.Helper()
	o, err := o.checked()
	testkit.Check(t, err)
	return newGate(o, src)
}

// firstLook lets one request for sku enter a stepped gate, and leave it.
func firstLook(t *testing.T, g *Gate, now int64, sku []byte) reject.Reason {
	t.Helper()
	answer := make(chan reject.Reason)
	go func() { answer <- g.Enter(now, sku, nil) }()
	g.poller.readFirst(t.Context(), now, <-g.poller.queue)
	return left(g, sku, <-answer)
}

// left ends at once what was admitted.
func left(g *Gate, sku []byte, said reject.Reason) reject.Reason {
	if said == reject.Admitted {
		g.Leave(sku)
	}
	return said
}

// A literal reading, for laws about times.
func reading(n int64) layout.Reading {
	return layout.Reading{Left: n, Free: n, Exists: true, OnSale: true}
}
