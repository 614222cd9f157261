package stockgate

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/layout"
)

// paced is a gate whose time stands still but for advance, which lets the poller work each millisecond.
type paced struct {
	*Gate
	now int64
}

func pacedGate(t *testing.T, o Options, src Source) *paced {
	t.Helper()
	p := &paced{now: int64(time.Hour)}
	o.Now = func() int64 { return p.now }
	p.Gate = stepped(t, o, src)
	return p
}

func (p *paced) advance(t *testing.T, d time.Duration) {
	for end := p.now + int64(d); p.now < end; {
		p.now += int64(time.Millisecond)
		p.poller.work(t.Context(), p.now)
	}
}

func TestStockgate_SKUThatIsAskedForOnceASecondIsReadAFewTimesInIt(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	testkit.Check(t, s.Set(t.Context(), "1001", 10))
	g, sku := pacedGate(t, options(), s), []byte("1001")
	firstLook(t, g.Gate, g.now, sku)
	e, before := g.table.Find(sku), server.Calls("get")
	const seconds = 20
	for range seconds {
		g.advance(t, time.Second)
		if _, at := e.reading(); g.now-at > int64(260*time.Millisecond) {
			t.Fatalf("the reading is %v old", time.Duration(g.now-at))
		}
		if got := left(g.Gate, sku, g.Enter(g.now, sku, nil)); got != reject.Admitted {
			t.Fatal(got)
		}
		g.advance(t, 10*time.Millisecond)
		if _, at := e.reading(); g.now-at > int64(10*time.Millisecond) {
			t.Fatalf("a refresh after a request asked the reading is %v old", time.Duration(g.now-at))
		}
	}
	if n := server.Calls("get") - before; n < seconds || n > 6*seconds {
		t.Errorf("%d readings in %d s, want some five a second", n, seconds)
	}
}

func TestStockgate_HotSKUIsReadAtEveryRefresh(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	testkit.Check(t, s.Set(t.Context(), "1001", 10))
	g, sku := pacedGate(t, options(), s), []byte("1001")
	firstLook(t, g.Gate, g.now, sku)
	g.Closed(g.now, sku)
	g.advance(t, 10*time.Millisecond)
	before := server.Calls("get")
	for range 100 {
		for range 64 {
			g.Closed(g.now, sku)
		}
		g.advance(t, time.Millisecond)
	}
	if n := server.Calls("get") - before; n != 10 {
		t.Errorf("%d readings in ten refreshes", n)
	}
}

// Shoppers who come at random, some fifty a second, are judged by a reading that is older than a refresh: one of those
// who come between two readings, and each one within the refresh behind it.
func TestStockgate_OldReadingsJudgeHardlyMoreThanOneRequestEach(t *testing.T) {
	m := NewMemory()
	testkit.Check(t, m.Set(t.Context(), "1001", 10))
	g, sku := pacedGate(t, options(), m), []byte("1001")
	g.poller.publishReading(g.now, addEntry(g.table, g.now, sku), reading(10))
	e, dice := g.table.Find(sku), rand.New(rand.NewPCG(1, 2))
	by := make(map[int64]int) // requests, by the reading
	for range 200_000 {
		g.advance(t, time.Millisecond)
		if dice.IntN(20) > 0 {
			continue
		}
		if _, at := e.reading(); g.now-at > int64(10*time.Millisecond) {
			by[at]++
		}
		if got := left(g.Gate, sku, g.Enter(g.now, sku, nil)); got != reject.Admitted {
			t.Fatal(got)
		}
	}
	all := 0
	for _, n := range by {
		all += n
	}
	t.Logf("%d requests by %d old readings", all, len(by))
	if len(by) == 0 || all*10 > len(by)*13 {
		t.Errorf("%d requests by %d old readings", all, len(by))
	}
}

// burstBehindAPause is what becomes of a hundred requests for a SKU that had ten units when it was read last, and has n
// now.
func burstBehindAPause(t *testing.T, n int64) (admitted, soldOut int64) {
	m := NewMemory()
	o := options()
	o.SoldOutMemory = 4 * time.Second
	g, sku := pacedGate(t, o, m), []byte("1001")
	e := addEntry(g.table, g.now, sku)
	g.poller.publishReading(g.now, e, reading(10))
	testkit.Check(t, m.Set(t.Context(), "1001", 0))
	testkit.Must[int64](t)(m.Add(t.Context(), "1001", n))
	g.now += int64(900 * time.Millisecond)
	var let, rejected atomic.Int64
	var all sync.WaitGroup
	now := g.now
	for range 100 {
		all.Go(func() {
			g.Closed(now, sku)
			switch got := g.Enter(now, sku, nil); got {
			case reject.Admitted:
				let.Add(1)
			case reject.SoldOut:
				rejected.Add(1)
			default:
				t.Error(got)
			}
		})
	}
	testkit.Eventually(t, "one is in, and another waits", func() bool {
		return let.Load() > 0 && len(g.poller.queue) > 0 ||
			let.Load() == 100
	})
	g.poller.readFirst(t.Context(), g.now)
	g.advance(t, 20*time.Millisecond)
	all.Wait()
	return let.Load(), rejected.Load()
}

// A shop that counts below zero has sold out as well: a first such reading lets no request through that waits for one.
func TestStockgate_BurstBehindAPauseSendsOneIntoAShopThatHasSoldOut(t *testing.T) {
	for _, n := range []int64{0, -3} {
		if admitted, soldOut := burstBehindAPause(t, n); admitted != 1 || soldOut != 99 {
			t.Errorf("%d left: %d admitted, %d sold out", n, admitted, soldOut)
		}
	}
}

// An old reading serves one request and no more, none beyond sold_out_ttl, and none while no other can be read.
func TestStockgate_OldReadingServesOneRequest(t *testing.T) {
	sku := []byte("1001")
	const at = int64(5e9)
	for _, c := range []struct {
		age  time.Duration
		lost bool
		want bool
	}{
		{200 * time.Millisecond, false, true}, {201 * time.Millisecond, false, true}, {time.Second, false, true},
		{time.Second + 1, false, false}, {201 * time.Millisecond, true, false},
	} {
		o := options()
		o.Wait = time.Millisecond
		g, _ := learnt(t, o, at, sku, reading(3))
		if c.lost {
			g.poller.health.record(at, errors.New("gone"))
		}
		now := at + int64(c.age)
		if got := g.Enter(now, sku, nil) == reject.Admitted; got != c.want {
			t.Errorf("%v old, lost %t: the first is admitted %t", c.age, c.lost, got)
		}
		if again := g.Enter(now, sku, nil) == reject.Admitted; again != (c.age <= 200*time.Millisecond) {
			t.Errorf("%v old, lost %t: the second is admitted %t", c.age, c.lost, again)
		}
	}
}

func TestStockgate_CrowdWritesOnceForEachReading(t *testing.T) {
	e, writes := &entry{}, 0
	for now := range int64(10_000) { // a second, in steps of 100 µs, with a reading every 10 ms
		before := e.asked.Load()
		e.markAsked(now*100_000, now/100*10_000_000)
		if e.asked.Load() != before {
			writes++
		}
	}
	if writes > 101 || writes < 99 {
		t.Fatalf("%d writes for 100 readings", writes)
	}
}

func TestPoller_UnconfirmedReadingIsReadAgainAtTheNextRefresh(t *testing.T) {
	const at = int64(5e9)
	g, e := learnt(t, options(), at, []byte("1001"), reading(3))
	next := at + int64(10*time.Millisecond)
	e.asked.Store(at - 1)
	if g.poller.due(next, e) {
		t.Error("a SKU without requests is read")
	}
	g.poller.publishReading(at, e, reading(-3))
	if !g.poller.due(next, e) {
		t.Error("a first reading below zero is left alone")
	}
}

// slowly is a source that takes its time.
type slowly struct {
	*Memory
	now   *int64
	takes int64
}

func (s *slowly) ReadUncached(ctx context.Context, skus []string, out []layout.Reading) error {
	*s.now += s.takes
	return s.Memory.ReadUncached(ctx, skus, out)
}

func TestStockgate_TurnIsFollowedByAsMuchRest(t *testing.T) {
	s := stepped(t, options(), NewMemory()).poller
	ms := int64(time.Millisecond)
	for _, c := range []struct{ took, want int64 }{{0, 10}, {4, 10}, {5, 10}, {6, 12}, {30, 60}, {80, 130}} {
		began := int64(time.Hour)
		s.turnAt = began + s.rules.Load().refresh
		s.cooldown(began, began+c.took*ms)
		if got := (s.turnAt - began) / ms; got != c.want {
			t.Errorf("a turn of %d ms: the next begins after %d ms, want %d", c.took, got, c.want)
		}
	}
	slow := &slowly{Memory: NewMemory(), takes: 30 * ms}
	g := pacedGate(t, options(), slow)
	slow.now = &g.now
	began, sku := g.now, []byte("1001")
	g.poller.publishReading(g.now-int64(time.Second), addEntry(g.table, g.now, sku), reading(1))
	if g.poller.work(t.Context(), g.now); g.poller.turnAt-began != 60*ms {
		t.Errorf("a turn of 30 ms: the next begins after %v", time.Duration(g.poller.turnAt-began))
	}
	s.turnAt = int64(2 * time.Hour) // the source is lost
	if s.cooldown(0, ms); s.turnAt != int64(2*time.Hour) {
		t.Error("a rest is sooner than what was planned")
	}
}

// A look that waits for a second reading ends with those readings: the next one is asked for anew.
func TestPoller_UnconfirmedReadingIsLeftWhenNoRequestAsks(t *testing.T) {
	m, o := NewMemory(), options()
	o.Wait = time.Millisecond
	g, sku := pacedGate(t, o, m), []byte("1001")
	e := addEntry(g.table, g.now, sku)
	g.poller.publishReading(g.now, e, reading(10))
	testkit.Check(t, m.Set(t.Context(), "1001", 0))
	testkit.Must[int64](t)(m.Add(t.Context(), "1001", -3))
	g.now += int64(2 * time.Second)
	if got := g.Enter(g.now, sku, nil); got != reject.StockError {
		t.Fatalf("it was not read: %v", got)
	}
	g.poller.readFirst(t.Context(), g.now)
	g.now += int64(6 * time.Second) // the source was away
	g.advance(t, 20*time.Millisecond)
	g.Enter(g.now, sku, nil)
	g.poller.readFirst(t.Context(), g.now)
	if got := g.Enter(g.now, sku, nil); got != reject.SoldOut {
		t.Errorf("asked for again: %v", got)
	}
}

// flooded is a source that is slow, and of which another SKU that is on sale is asked whenever it reads for the first
// time.
type flooded struct {
	*slowly
	ask   func()
	looks int
}

func (f *flooded) Read(ctx context.Context, skus []string, out []layout.Reading) error {
	if f.looks++; f.looks < 100 {
		f.ask()
	}
	*f.now += f.takes
	return f.Memory.Read(ctx, skus, out)
}

// Shoppers who open one page of a large shop after another ask for SKUs that are new to the gate, one behind the other.
// Those that are asked for already are read all the same.
func TestStockgate_TurnEndsHoweverManyNewSKUsAreAskedForMeanwhile(t *testing.T) {
	m := NewMemory()
	src := &flooded{slowly: &slowly{Memory: m, takes: int64(2 * time.Millisecond)}}
	g := pacedGate(t, options(), src)
	src.now = &g.now
	src.ask = func() {
		sku := name(src.looks)
		testkit.Check(t, m.Set(t.Context(), string(sku), 5))
		g.poller.queueFirstRead(addEntry(g.table, g.now, sku))
	}
	testkit.Check(t, m.Set(t.Context(), "hot", 5))
	g.poller.publishReading(g.now-int64(time.Second), addEntry(g.table, g.now, []byte("hot")), reading(5))
	src.ask()
	g.poller.pollOnce(t.Context(), g.now)
	if src.looks != 1 {
		t.Errorf("a turn of one SKU took %d first looks", src.looks)
	}
}

// Who has tried for a unit that came back, and has left, may have left it to others: that is read although no request
// asks.
func TestPoller_UnitLeftByATryIsReadAtTheNextRefresh(t *testing.T) {
	m := NewMemory()
	testkit.Check(t, m.Set(t.Context(), "1001", 0))
	g, sku := pacedGate(t, options(), m), []byte("1001")
	if got := firstLook(t, g.Gate, g.now, sku); got != reject.SoldOut {
		t.Fatal(got)
	}
	testkit.Check(t, m.Set(t.Context(), "1001", 1))
	g.advance(t, 300*time.Millisecond)
	if got := g.Enter(g.now, sku, nil); got != reject.Admitted {
		t.Fatal(got)
	}
	g.advance(t, 50*time.Millisecond)
	g.Leave(sku) // in vain
	g.advance(t, 20*time.Millisecond)
	if got := g.Enter(g.now, sku, nil); got != reject.Admitted {
		t.Errorf("one unit is there, and no request is under way for it: %v", got)
	}
}
