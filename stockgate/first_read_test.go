package stockgate

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

func TestStockgate_TenThousandFirstAskersAreOneRead(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	testkit.Check(t, s.Set(t.Context(), "1001", 10))
	o := options()
	o.Refresh = time.Hour // the poller stands still, and the first look lasts
	g := open(t, o, s)
	start := make(chan struct{})
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 10_000 {
		wg.Go(func() {
			<-start
			if g.Enter(o.Now(), []byte("1001"), nil) == reject.Admitted {
				admitted.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	if n := admitted.Load(); n != 10_000 {
		t.Errorf("%d of 10,000 were admitted", n)
	}
	if n := server.Calls("get"); n != 1 {
		t.Errorf("10,000 first askers took %d reads", n)
	}
}

// A request may find a SKU out of date, be delayed, and arrive when the look it wants has just ended.
func TestStockgate_LookThatHasJustEndedIsNotTakenAgain(t *testing.T) {
	g, e := learnt(t, options(), 5, []byte("1001"), reading(1))
	if v := g.firstRead(5, e); v != onSale {
		t.Fatalf("look: %v", v)
	}
	if n := len(g.poller.queue); n != 0 || e.pending.Load() != nil {
		t.Fatalf("%d looks are waiting", n)
	}
}

func TestStockgate_FirstLookWaitsForOneRoundTripOfATurnOnly(t *testing.T) {
	g := stepped(t, options(), NewMemory())
	for i := range 3 * readAtOnce {
		g.poller.publishReading(0, addEntry(g.table, 0, name(i)), reading(1))
	}
	g.look1(addEntry(g.table, 0, []byte("new")))
	g.poller.pollOnce(t.Context(), int64(20*time.Millisecond))
	if n := len(g.poller.queue); n != 0 {
		t.Fatalf("%d first looks are waiting after a turn", n)
	}
}

func TestStockgate_FirstLooksAtManySKUsShareRoundTrips(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	o := options()
	g := stepped(t, o, s)
	var wg sync.WaitGroup
	for i := range 2 * readAtOnce {
		wg.Go(func() {
			if got := g.Enter(0, name(i), nil); got != reject.UnknownSKU {
				t.Errorf("enter: %v", got)
			}
		})
	}
	testkit.Eventually(t, "all are waiting", func() bool { return len(g.poller.queue) == 2*readAtOnce })
	for now := range int64(2) {
		g.poller.readFirst(t.Context(), now*int64(time.Hour))
	}
	wg.Wait()
	if n := s.metrics.calls[read].Load(); n != 2 {
		t.Fatalf("640 first looks took %d round trips, want 2", n)
	}
}

func TestStockgate_FirstLooksArePaced(t *testing.T) {
	g := stepped(t, options(), NewMemory())
	s := g.poller
	for i := range 2 * readAtOnce {
		s.queueFirstRead(addEntry(g.table, 0, name(i)))
	}
	s.readFirst(t.Context(), 0)
	pause := readAtOnce * perFirstLook
	s.readFirst(t.Context(), pause-1)
	if n := len(s.queue); n != readAtOnce {
		t.Fatalf("%d are waiting within the pause, want %d", n, readAtOnce)
	}
	s.readFirst(t.Context(), pause)
	if n := len(s.queue); n != 0 {
		t.Fatalf("%d are waiting after the pause", n)
	}
}

func TestStockgate_WaitForAFirstLookIsBounded(t *testing.T) {
	o := options()
	o.Wait = time.Millisecond
	g := stepped(t, o, NewMemory()) // the poller does not run
	if got := g.Enter(0, []byte("1001"), nil); got != reject.StockError {
		t.Fatalf("enter: %v", got)
	}
}

func TestStockgate_FullQueueIsAnAnswerAtOnce(t *testing.T) {
	g := stepped(t, options(), NewMemory())
	for i := range maxPending {
		if !g.poller.queueFirstRead(addEntry(g.table, 0, name(i))) {
			t.Fatalf("the queue took %d of %d", i, maxPending)
		}
	}
	known := g.table.Len()
	if got := g.Enter(0, []byte("new"), nil); got != reject.StockError {
		t.Fatalf("enter a new SKU: %v", got)
	}
	if n := g.table.Len(); n != known {
		t.Fatalf("a rejected SKU is remembered: %d, was %d", n, known)
	}
	e := g.table.Find(name(0))
	if got := g.Enter(0, e.key(), nil); got != reject.StockError || e.pending.Load() != nil {
		t.Fatalf("enter a known SKU: %v, pending %v", got, e.pending.Load())
	}
}

func (e *entry) key() []byte { return []byte(e.sku) }

func TestStockgate_FailedLookWakesItsWaiters(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	g := stepped(t, options(), s)
	server.Kill()
	if got := firstLook(t, g, 0, []byte("1001")); got != reject.StockError {
		t.Fatalf("enter: %v", got)
	}
	if !g.poller.health.lost() {
		t.Fatal("the source is not lost")
	}
}

func TestStockgate_LostSourceIsNotWaitedFor(t *testing.T) {
	g := stepped(t, options(), NewMemory())
	g.poller.health.record(1, errors.New("gone"))
	if got := g.Enter(0, []byte("1001"), nil); got != reject.StockError {
		t.Fatalf("enter: %v", got)
	}
	if n := len(g.poller.queue); n != 0 {
		t.Fatalf("%d looks are waiting", n)
	}
}

func TestStockgate_ClosedGateAnswers(t *testing.T) {
	o := options()
	g := open(t, o, NewMemory())
	g.Close()
	select {
	case <-g.poller.done:
	default:
		t.Fatal("the poller outlived Close")
	}
	if got := g.Enter(o.Now(), []byte("1001"), nil); got != reject.StockError {
		t.Fatalf("enter: %v", got)
	}
}

// aside counts how often a request stepped aside.
type aside int

func (a *aside) StepAside() { *a++ }

func TestStockgate_OnlyWhatIsNotKnownToBeOnSaleIsAwaited(t *testing.T) {
	const at = int64(time.Hour)
	sku := []byte("1001")
	for what, c := range map[string]struct {
		units, age int64 // -1 = none is known; -2 = nor is there room to ask
		want       reject.Reason
		waits      bool
	}{
		"on sale":                   {units: 5},
		"on sale a while ago":       {units: 5, age: at}, // for Enter
		"sold out":                  {want: reject.SoldOut},
		"sold out a while ago":      {age: at, want: reject.UnknownSKU, waits: true},
		"that no request has named": {units: -1, want: reject.UnknownSKU, waits: true},
		"while too many wait":       {units: -2, want: reject.Concurrency},
	} {
		t.Run(what, func(t *testing.T) {
			g := stepped(t, options(), NewMemory())
			if c.units >= 0 {
				g.poller.publishReading(at-c.age, addEntry(g.table, at, sku), reading(c.units))
			}
			for i := range maxPending {
				if c.units == -2 {
					g.poller.queueFirstRead(addEntry(g.table, 0, name(i)))
				}
			}
			var steps aside
			answer := make(chan reject.Reason)
			go func() {
				reason, waited := g.AwaitReading(at, sku, &steps)
				if waited != c.waits || steps != 0 != waited {
					t.Errorf("waited %v after %d steps aside, want %v", waited, steps, c.waits)
				}
				answer <- reason
			}()
			if c.waits {
				g.poller.readFirst(t.Context(), at, <-g.poller.queue)
			}
			if got := <-answer; got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
