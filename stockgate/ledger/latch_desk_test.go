package ledger

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// soldOut returns a desk over one unit, which the user "winner" holds under the key "won".
func soldOut(t testing.TB, o DeskOptions) (*Desk, *shelf) {
	t.Helper()
	s := shelfOf(sku, 1)
	d := opened(t, o, s, nil)
	if out := d.buy("winner", "won"); out.Code != Held {
		t.Fatal(out)
	}
	d.winnersRead(t, sku)
	return d, s
}

// winnersRead returns when nobody reads any more who has won a SKU.
func (d *Desk) winnersRead(t testing.TB, sku string) *line {
	t.Helper()
	l := d.lines.find([]byte(sku))
	for l.reading.Load() {
		runtime.Gosched()
	}
	return l
}

func TestLatchAsksNobodyUntilItsTimeIsOverAndThenOnce(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		for i := range 1000 {
			wants(t, "sold out", d.buy(fmt.Sprint(i), ""), SoldOut)
		}
		if n := s.asked(); n != 1 {
			t.Fatalf("%d calls", n)
		}
		s.set(func(string, bool) error { time.Sleep(time.Millisecond); return nil })
		time.Sleep(time.Second + 1)
		storm(1000, 1000, func(i int) { wants(t, "still sold out", d.buy(fmt.Sprint(i), ""), SoldOut) })
		if n := s.asked(); n != 2 || s.items+s.glances != 2 {
			t.Errorf("%d calls for %d orders and at %d SKUs", n, s.items, s.glances)
		}
	})
}

func TestOneProberLooksAndTheOthersAreSoldOutMeanwhile(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		time.Sleep(time.Second + 1)
		s.set(func(string, bool) error { time.Sleep(time.Millisecond); return nil })
		probe := make(chan Outcome)
		go func() { probe <- d.buy("1", "") }()
		synctest.Wait()
		wants(t, "meanwhile", d.buy("2", ""), SoldOut)
		wants(t, "one who was passed on before", d.try(d.o.Now(), attempt("3", ""), &known{serial: "x"}), SoldOut)
		wants(t, "probe", <-probe, SoldOut)
		if s.items+s.glances != 2 {
			t.Errorf("%d orders reached the store, %d glances", s.items, s.glances)
		}
	})
}

func TestFailedProbeLeavesTheNextOneFree(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		time.Sleep(time.Second + 1)
		s.set(func(string, bool) error { return errLost })
		wants(t, "probe", d.buy("1", ""), Unsure)
		s.set(nil)
		wants(t, "next probe", d.buy("2", ""), SoldOut)
		if n := s.asked(); n != 2 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestReturnedUnitIsBuyable(t *testing.T) {
	at(t, func(t *testing.T) {
		d, _ := soldOut(t, deskOptions())
		wants(t, "before", d.buy("1", ""), SoldOut)
		d.Settle(sku, Item{Serial: "won"}, Release)
		synctest.Wait()
		wants(t, "after a release here", d.buy("1", ""), Held)
	})
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		other := opened(t, deskOptions(), s, nil)
		wants(t, "before", other.buy("1", ""), SoldOut)
		other.winnersRead(t, sku)
		d.Settle(sku, Item{Serial: "won"}, Release)
		synctest.Wait()
		wants(t, "elsewhere", other.buy("1", ""), SoldOut)
		other.Note(sku, s.stock(sku).Hint)
		wants(t, "elsewhere, when told", other.buy("1", ""), Held)
	})
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		if _, err := s.SetTotal(t.Context(), sku, 2, 0); err != nil {
			t.Fatal(err)
		}
		wants(t, "before", d.buy("1", ""), SoldOut)
		time.Sleep(time.Second + 1)
		wants(t, "after sold_out_memory", d.buy("1", ""), Held)
	})
}

func TestOlderHintNeverOpensTheLatch(t *testing.T) {
	d, s := soldOut(t, deskOptions())
	for _, h := range []Hint{{Free: 5, Epoch: 1, Ver: 1, State: On}, {Free: 5, Epoch: 0, Ver: 99, State: On}} {
		d.Note(sku, h)
		wants(t, "older hint", d.buy("1", ""), SoldOut)
	}
	if n := s.asked(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestKnownSerialIsNeverSoldOut(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		other := opened(t, deskOptions(), s, nil)
		wants(t, "loser elsewhere", other.buy("1", ""), SoldOut) // closes its latch
		for what, desk := range map[string]*Desk{"the same desk": d, "another desk": other} {
			wants(t, what, desk.buy("winner", "won"), ReplayHeld)
			wants(t, what+", other content", desk.buy("thief", "won"), OtherOrder)
		}
		d.Settle(sku, Item{Serial: "won"}, Confirm)
		synctest.Wait()
		for what, desk := range map[string]*Desk{"the same desk": d, "another desk": other} {
			wants(t, what+", sold", desk.buy("winner", "won"), ReplaySold)
		}
	})
}

func TestUserWithoutKeyWhoWonHereIsNeverSoldOut(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 1)
		o := deskOptions()
		o.PerUser = 2
		d := opened(t, o, s, nil)
		won := d.buy("winner", "")
		wants(t, "winner", won, Held)
		wants(t, "loser", d.buy("loser", ""), SoldOut)
		wants(t, "again", d.buy("winner", ""), ReplayHeld)
		d.Settle(sku, Item{Serial: won.Serial}, Confirm)
		synctest.Wait()
		for range 1000 { // past any rate of looks
			if out := d.buy("winner", ""); out.Code != ReplaySold || out.Serial != won.Serial {
				t.Fatalf("sold: %v", out)
			}
		}
	})
}

// Invented keys may cost neither the store its peace nor a buyer the truth.
func TestFloodOfInventedKeysIsBounded(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := soldOut(t, deskOptions())
		other := opened(t, deskOptions(), s, nil)
		wants(t, "loser", other.buy("1", ""), SoldOut)
		s.set(func(string, bool) error { time.Sleep(time.Millisecond); return nil })
		before := s.asked()
		for second := range 5 {
			for tenth := range 10 {
				storm(400, 400, func(i int) {
					switch out := other.buy("x", fmt.Sprint(second, "-", tenth, "-", i)); out.Code {
					case SoldOut, Overloaded:
					default:
						t.Errorf("invented: %v", out)
					}
				})
				switch out := other.buy("winner", "won"); out.Code {
				case ReplayHeld, Overloaded:
				default:
					t.Errorf("winner elsewhere: %v", out)
				}
				wants(t, "winner here", d.buy("winner", "won"), ReplayHeld)
				time.Sleep(90 * time.Millisecond)
			}
		}
		// Two desks, ten looks at once and ten a second each, and a probe a second.
		if n := s.asked() - before; n > 2*(10+5*10+5) {
			t.Errorf("%d calls", n)
		}
	})
}

func TestStateOfTheSKUIsTold(t *testing.T) {
	s := shelfOf(sku, 1)
	d := opened(t, deskOptions(), s, nil)
	if _, err := s.SetState(t.Context(), sku, Paused); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if out := d.buy("1", ""); out.Code != NotOnSale || out.State != Paused {
			t.Fatalf("paused: %v", out)
		}
	}
	if n := s.asked(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestLatchAllocatesAndWritesNothing(t *testing.T) {
	d, s := soldOut(t, deskOptions())
	d.rest() // what it looks after by itself, once a second, is not what is counted
	d.watch.Wait()
	s.set(func(string, bool) error { t.Error("the store was asked"); return nil })
	l := d.lines.find([]byte(sku))
	for l.looks.take(0) {
	}
	counted := func() (n [numEvents]uint64) {
		for e := range numEvents {
			n[e] = l.events.counts[e].Load()
		}
		return n
	}
	before := counted()
	for what, c := range map[string]struct {
		order Order
		want  Code
	}{
		"stranger":       {attempt("stranger", ""), SoldOut},
		"nobody":         {attempt("", ""), SoldOut},
		"invented key":   {attempt("stranger", "invented"), SoldOut},
		"winner's retry": {attempt("winner", "won"), ReplayHeld},
	} {
		if n := testing.AllocsPerRun(1000, func() {
			if out, closed := d.Closed(0, c.order); !closed || out.Code != c.want {
				t.Fatalf("%s: %v", what, out)
			}
			if out := d.Reserve(0, c.order); out.Code != c.want {
				t.Fatalf("%s: %v", what, out)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	if after := counted(); after != before {
		t.Errorf("a refusal wrote: %v became %v", before, after)
	}
}

func BenchmarkClosed(b *testing.B) {
	d, _ := soldOut(b, deskOptions())
	l := d.lines.find([]byte(sku))
	for l.looks.take(0) {
	}
	for what, o := range map[string]Order{"unkeyed": attempt("stranger", ""), "keyed": attempt("stranger", "invented-key-0001"), "winner": attempt("winner", "won")} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					d.Closed(0, o)
				}
			})
		})
	}
}

// Every order is a new user's; a store of no latency shows what the desk itself costs.
func BenchmarkDeskReserve(b *testing.B) {
	for _, keyed := range []bool{false, true} {
		b.Run(map[bool]string{false: "derived", true: "keyed"}[keyed], func(b *testing.B) {
			d := opened(b, deskOptions(), shelfOf(sku, 1<<40), nil)
			var n atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(256)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					name, key := fmt.Sprint(n.Add(1)), ""
					if keyed {
						key = name
					}
					if out := d.buy(name, key); out.Code != Held {
						b.Fatal(out)
					}
				}
			})
		})
	}
}

// However many buyers come again while Redis is slow, whoever probes beside them makes no call larger than it may be: a store
// refuses that, and nobody would hear anything.
func TestProbeBesideAFullCallOfLooksHasACallOfItsOwn(t *testing.T) {
	at(t, func(t *testing.T) {
		const winners = 900
		s := shelfOf(sku, winners+1)
		d := opened(t, deskOptions(), s, nil)
		again := func(i int) Outcome { return d.buy(fmt.Sprint(i), fmt.Sprint("key-", i)) }
		storm(winners+1, winners+1, func(i int) { wants(t, "buyer", again(i), Held) })
		l := d.winnersRead(t, sku)
		s.set(func(op string, after bool) error {
			if op == "reserve" && !after {
				time.Sleep(1500 * time.Millisecond)
			}
			return nil
		})
		var all sync.WaitGroup
		for _, i := range []int{1, 300, winners} { // one is under way, then a full call, then as many wait
			for j := range i {
				all.Go(func() { wants(t, "buyer again", again(j), ReplayHeld) })
			}
			synctest.Wait()
		}
		time.Sleep(1100 * time.Millisecond) // the latch is old
		all.Go(func() { wants(t, "one who probes, and has won", again(winners), ReplayHeld) })
		synctest.Wait()
		l.mu.Lock()
		calls, looking := l.calls, len(l.looking)
		l.mu.Unlock()
		all.Wait()
		want(t, "calls", calls, mostCalls)
		want(t, "who waited for a look", looking, mostItems+1)
		want(t, "the most orders in one call", s.peak, mostItems)
	})
}
