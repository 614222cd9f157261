package ledger

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
)

// soldOut returns a reserver over one unit, which the user "winner" has bought under the key "won".
func soldOut(t testing.TB, o Options) (*Reserver, *fakeStore) {
	t.Helper()
	s := fakeStoreOf(testSKU, 1)
	r := opened(t, o, s, nil)
	if out := r.buy("winner", "won"); out.Code != Held {
		t.Fatal(out)
	}
	r.Settle(testSKU, "won", Confirm)
	testkit.Eventually(t, "sold", func() bool {
		h, _ := r.Status(0, []byte(testSKU))
		return len(r.capacity) == 0 && h.Held == 0
	})
	return r, s
}

// buyUnnamed orders a unit, by an order that nothing identifies.
func (r *Reserver) buyUnnamed() Outcome { return r.buy("", "") }

func TestSoldOutCache_IsRefreshedByOneOrderWhenItIsOld(t *testing.T) {
	at(t, func(t *testing.T) {
		r, s := soldOut(t, testOptions())
		before := s.count("reserve")
		for range 1000 {
			wants(t, "sold out", r.buyUnnamed(), SoldOut)
		}
		testkit.Want(t, "calls", s.count("reserve"), before)
		s.set(func(string, bool) error { time.Sleep(time.Millisecond); return nil })
		time.Sleep(time.Second + 1)
		testkit.Storm(1000, 1000, func(int) { wants(t, "still sold out", r.buyUnnamed(), SoldOut) })
		testkit.Want(t, "calls", s.count("reserve"), before+1)
	})
}

func TestSoldOutCache_AnswersWhileOneOrderRefreshesIt(t *testing.T) {
	at(t, func(t *testing.T) {
		r, s := soldOut(t, testOptions())
		time.Sleep(time.Second + 1)
		s.set(func(string, bool) error { time.Sleep(time.Millisecond); return nil })
		first := make(chan Outcome)
		go func() { first <- r.buyUnnamed() }()
		synctest.Wait()
		wants(t, "meanwhile", r.buyUnnamed(), SoldOut)
		wants(t, "the order that refreshes", <-first, SoldOut)
	})
}

func TestSoldOutCache_FailedRefreshLeavesItToTheNextOrder(t *testing.T) {
	at(t, func(t *testing.T) {
		r, s := soldOut(t, testOptions())
		time.Sleep(time.Second + 1)
		s.set(func(string, bool) error { return errNetwork })
		wants(t, "first", r.buyUnnamed(), Unsure)
		s.set(nil)
		before := s.count("reserve")
		wants(t, "next", r.buyUnnamed(), SoldOut)
		testkit.Want(t, "calls", s.count("reserve")-before, 1)
	})
}

func TestSoldOutCache_UnitThatComesBackCanBeBought(t *testing.T) {
	at(t, func(t *testing.T) {
		r, s := soldOut(t, testOptions())
		other := opened(t, testOptions(), s, nil)
		wants(t, "before", other.buyUnnamed(), SoldOut)
		r.Settle(testSKU, "won", Refund)
		synctest.Wait()
		wants(t, "elsewhere", other.buyUnnamed(), SoldOut)
		other.Learn(testSKU, s.stock(testSKU).StockVersion)
		wants(t, "elsewhere, when told", other.buyUnnamed(), Held)
	})
	at(t, func(t *testing.T) {
		r, s := soldOut(t, testOptions())
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), testSKU, 2, 0))
		wants(t, "before", r.buyUnnamed(), SoldOut)
		time.Sleep(time.Second + 1)
		wants(t, "after sold_out_ttl", r.buyUnnamed(), Held)
	})
}

func TestSoldOutCache_OlderVersionChangesNothing(t *testing.T) {
	at(t, func(t *testing.T) {
		r, s := soldOut(t, testOptions())
		before := s.count("reserve")
		for _, h := range []StockVersion{{Free: 5, Epoch: 1, Ver: 1, State: On},
			{Free: 5, Epoch: 0, Ver: 99, State: On}} {
			r.Learn(testSKU, h)
			wants(t, "older version", r.buyUnnamed(), SoldOut)
		}
		testkit.Want(t, "calls", s.count("reserve"), before)
	})
}

// While units are reserved and not confirmed, they may come back: no client is told that all is sold.
func TestReserver_UndecidedUnitsAreNotSoldOut(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 2)
		r := opened(t, testOptions(), s, nil)
		other := opened(t, testOptions(), s, nil)
		wants(t, "a", r.buy("", "a"), Held)
		wants(t, "b", r.buy("", "b"), Held)
		three := attempt("", "c")
		three.Quantity = 3
		for what, r := range map[string]*Reserver{"here": r, "elsewhere": other} {
			wants(t, what+", by the ledger or the cache", r.buyUnnamed(), Undecided)
			wants(t, what+", by the cache", r.buyUnnamed(), Undecided)
			wants(t, what+", with a key", r.buy("", "c"), Undecided)
			wants(t, what+", more than there are", r.Reserve(r.o.Now(), three), SoldOut)
		}
		r.Settle(testSKU, "a", Confirm)
		synctest.Wait()
		wants(t, "one is undecided", r.buyUnnamed(), Undecided)
		r.Settle(testSKU, "b", Confirm)
		synctest.Wait()
		wants(t, "none is undecided", r.buyUnnamed(), SoldOut)
		time.Sleep(time.Second + 1)
		wants(t, "elsewhere, when the cache is old", other.buyUnnamed(), SoldOut)
	})
}

// A crowd that comes while too few replicas have the reservations is not sent away: the units come back.
func TestReserver_UnitsThatTooFewReplicasHaveAreUndecided(t *testing.T) {
	at(t, func(t *testing.T) {
		const units, clients = 100, 600
		s := fakeStoreOf(testSKU, units)
		s.set(func(op string, after bool) error {
			if op == "reserve" && after {
				return ErrFewReplicas
			}
			return nil
		})
		r := opened(t, testOptions(), s, nil)
		codes := make(chan Code, clients)
		testkit.Storm(clients, clients, func(i int) { codes <- r.buy(fmt.Sprint("user-", i), "").Code })
		close(codes)
		heard := map[Code]int{}
		for code := range codes {
			heard[code]++
		}
		testkit.Want(t, "sold out", heard[SoldOut], 0)
		testkit.Want(t, "reserved", heard[Held], 0)
		s.set(nil)
		time.Sleep(5 * time.Second)
		testkit.Want(t, "free", s.stock(testSKU).Free, units)
		wants(t, "later", r.buyUnnamed(), Held)
	})
}

func TestReserver_WinnerIsFoundThroughAnyInstance(t *testing.T) {
	at(t, func(t *testing.T) {
		r, s := soldOut(t, testOptions())
		other := opened(t, testOptions(), s, nil)
		wants(t, "loser elsewhere", other.buyUnnamed(), SoldOut) // fills its cache
		for what, r := range map[string]*Reserver{"the same instance": r, "another instance": other} {
			wants(t, what, r.buy("winner", "won"), ReplaySold)
			wants(t, what+", other content", r.buy("thief", "won"), OtherOrder)
			wants(t, what+", another key", r.buy("loser", "lost"), SoldOut)
		}
		r.Settle(testSKU, "won", Refund)
		time.Sleep(time.Second + 1)
		wants(t, "refunded", other.buy("winner", "won"), Released) // as the fake keeps it
	})
}

func TestReserver_WinnerOfSeveralUnitsIsFoundWhileFewerAreFree(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 4)
		o := testOptions()
		o.PerUser = 2
		here, there := opened(t, o, s, nil), opened(t, o, s, nil)
		two := Order{SKU: []byte(testSKU), User: []byte("ann"), Quantity: 2}
		won := here.Reserve(here.o.Now(), two)
		wants(t, "two units", won, Held)
		wants(t, "another, elsewhere", there.buy("bob", ""), Held) // leaves one
		again := there.Reserve(there.o.Now(), two)
		wants(t, "again, elsewhere", again, ReplayHeld)
		testkit.Want(t, "serial", again.Serial, won.Serial)
		two.User = []byte("zoe")
		wants(t, "a user who has won nothing", there.Reserve(there.o.Now(), two), Undecided)
	})
}

func TestReserver_WinnerWithoutKeyIsNeverSoldOut(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 1)
		o := testOptions()
		o.PerUser = 2
		r, other := opened(t, o, s, nil), opened(t, o, s, nil)
		won := r.buy("winner", "")
		wants(t, "winner", won, Held)
		wants(t, "again", r.buy("winner", ""), ReplayHeld)
		r.Settle(testSKU, won.Serial, Confirm)
		synctest.Wait()
		wants(t, "loser", r.buy("loser", ""), SoldOut)
		wants(t, "loser", other.buy("loser", ""), SoldOut)
		for range 10 {
			for what, r := range map[string]*Reserver{"here": r, "elsewhere": other} {
				if out := r.buy("winner", ""); out.Code != ReplaySold || out.Serial != won.Serial {
					t.Fatalf("%s: %v", what, out)
				}
			}
		}
	})
}

// Invented keys may cost neither the store its peace nor a winner of this instance the truth.
func TestReserver_FloodOfInventedKeysIsBounded(t *testing.T) {
	at(t, func(t *testing.T) {
		r, s := soldOut(t, testOptions())
		other := opened(t, testOptions(), s, nil)
		wants(t, "loser", other.buyUnnamed(), SoldOut)
		s.set(func(string, bool) error { time.Sleep(time.Millisecond); return nil })
		before, began := s.asked(), time.Now()
		var unverified atomic.Int64
		for second := range 5 {
			for tenth := range 10 {
				testkit.Storm(400, 400, func(i int) {
					out := other.buy("x", fmt.Sprint(second, "-", tenth, "-", i))
					wants(t, "invented", out, SoldOut)
					if out.Unverified {
						unverified.Add(1)
					}
				})
				switch out := other.buy("winner", "won"); {
				case out.Code == ReplaySold:
				case out.Code != SoldOut || !out.Unverified:
					t.Errorf("winner elsewhere: %v", out)
				}
				wants(t, "winner here", r.buy("winner", "won"), ReplaySold)
				time.Sleep(90 * time.Millisecond)
			}
		}
		// Two instances, 50 look-up calls a second each, and a refresh a second.
		took := int(time.Since(began)/time.Second) + 1
		if n := s.asked() - before; n > 2*(50+51*took) || unverified.Load() == 0 {
			t.Errorf("%d calls, %d orders were not looked up", n, unverified.Load())
		}
	})
}

func TestReserver_StateOfTheSKUIsTold(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 1)
		r := opened(t, testOptions(), s, nil)
		testkit.Must[Stock](t)(s.SetState(t.Context(), testSKU, Paused))
		for range 3 {
			if out := r.buyUnnamed(); out.Code != NotOnSale || out.State != Paused {
				t.Fatalf("paused: %v", out)
			}
		}
		testkit.Want(t, "calls", s.asked(), 1)
	})
}

func TestReserver_RejectionFromMemoryAllocatesAndWritesNothing(t *testing.T) {
	r, s := soldOut(t, testOptions())
	r.stop() // what it looks after by itself, once a second, is not what is counted
	r.background.Wait()
	s.set(func(string, bool) error { t.Error("the store was asked"); return nil })
	defer s.set(nil)
	r.lookups.waits.Store(lookupSize) // no capacity
	counted := func() (n int64) {
		for _, event := range answerEvents {
			n += valueOf(r.orders.WithLabelValues(otherSKUs, event))
		}
		return n
	}
	before := counted()
	for what, c := range map[string]struct {
		order      Order
		want       Code
		unverified bool
	}{
		"user":           {attempt("loser", ""), SoldOut, true},
		"no name":        {attempt("", ""), SoldOut, false},
		"invented key":   {attempt("loser", "invented"), SoldOut, true},
		"winner's retry": {attempt("winner", "won"), ReplaySold, false},
	} {
		if n := testing.AllocsPerRun(1000, func() {
			if out, closed := r.Cached(0, c.order); !closed || out.Code != c.want || out.Unverified != c.unverified {
				t.Fatalf("%s: %v", what, out)
			}
			if out := r.Reserve(0, c.order); out.Code != c.want {
				t.Fatalf("%s: %v", what, out)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	if after := counted(); after != before {
		t.Errorf("a rejection wrote: %v became %v", before, after)
	}
}

// buyEach asks once for each of n SKUs, at the same instant.
func buyEach(t *testing.T, r *Reserver, n int, want Code) {
	t.Helper()
	all := make(chan Outcome, n)
	for i := range n {
		go func() {
			o := attempt("", "")
			o.SKU = fmt.Append(nil, "many-", i)
			all <- r.Reserve(r.o.Now(), o)
		}()
	}
	for range n {
		wants(t, "one of many", <-all, want)
	}
}

// manySoldOut is a reserver over n SKUs of which all is sold.
func manySoldOut(t *testing.T, n int) (*Reserver, *fakeStore) {
	t.Helper()
	s := newFakeStore()
	for i := range n {
		s.put(fmt.Sprint("many-", i), 0, 0)
	}
	return opened(t, testOptions(), s, nil), s
}

// A crowd over very many SKUs that are sold out is no call each: refreshes have a rate, and all SKUs have their turn.
func TestReserver_RefreshesOfManySKUsAreBounded(t *testing.T) {
	at(t, func(t *testing.T) {
		const n = 1000
		r, s := manySoldOut(t, n)
		buyEach(t, r, n, SoldOut)
		synctest.Wait()
		testkit.Want(t, "calls, one a SKU", s.count("reserve"), n)
		time.Sleep(time.Second + 1)
		began := r.o.Now()
		buyEach(t, r, n, SoldOut)
		testkit.Want(t, "refreshes at once", s.count("reserve")-n, refreshDepth)
		for range 40 { // 4 s: each is refreshed, some twice
			time.Sleep(100 * time.Millisecond)
			buyEach(t, r, n, SoldOut)
		}
		refreshed := s.count("reserve") - n
		if most := refreshDepth + int((r.o.Now()-began)/refreshInterval) + 1; refreshed < n || refreshed > most {
			t.Errorf("%d refreshes, want %d to %d", refreshed, n, most)
		}
	})
}

// SKUs that are known to have a ledger are not new, however many are asked for at once, and are not forgotten before
// they are asked for.
func TestReserver_PreloadedSKUsDoNotWait(t *testing.T) {
	at(t, func(t *testing.T) {
		const n = newSKUDepth + 500
		r, _ := manySoldOut(t, n)
		for i := range n {
			if !r.Preload(fmt.Sprint("many-", i)) {
				t.Fatalf("there is no room for %d", i)
			}
		}
		time.Sleep(time.Minute) // many sweeps
		buyEach(t, r, n, SoldOut)
	})
}

func TestReserver_StateIsFoundAmongManySKUs(t *testing.T) {
	at(t, func(t *testing.T) {
		const n = maxSearched
		r, s := manySoldOut(t, n)
		s.put("the last", 1, 0)
		for i := range n - 1 {
			r.Track(fmt.Sprint("many-", i))
		}
		o := attempt("", "mine")
		o.SKU = []byte("the last")
		wants(t, "order", r.Reserve(r.o.Now(), o), Held)
		rec, of, ok, err := r.State("", "mine")
		if err != nil || !ok || of != "the last" || rec.Status != StatusHeld {
			t.Errorf("%+v of %q, %v, %v", rec, of, ok, err)
		}
		r.Track("one more")
		if _, _, _, err := r.State("", "mine"); err != ErrTooMany {
			t.Errorf("of more SKUs: %v", err)
		}
	})
}

// Calls overtake each other: what an older reply says is not believed, unless it comes from another server that lacks
// what was seen.
func TestSoldOutCache_KeepsTheNewestOfOneServer(t *testing.T) {
	t.Parallel()
	reply := func(epoch, ver int64, state State) *cachedStock {
		return &cachedStock{StockVersion: StockVersion{Epoch: epoch, Ver: ver, State: state}}
	}
	seen := reply(7, 5, On)
	for name, c := range map[string]struct {
		next *cachedStock
		want bool
	}{
		"a newer one":                             {reply(7, 6, On), false},
		"an older one":                            {reply(7, 4, On), true},
		"one of an earlier epoch":                 {reply(6, 9, On), true},
		"one that was frozen before":              {reply(7, 4, Frozen), true},
		"a frozen ledger of an earlier epoch":     {reply(6, 9, Frozen), false},
		"one of which the ledger is lost":         {reply(6, 9, Lost), false},
		"one of a server that has no such ledger": {&cachedStock{absent: true}, false},
	} {
		testkit.Want(t, name, seen.outlives(c.next), c.want)
	}
	var none *cachedStock
	testkit.Want(t, "the first one", none.outlives(reply(1, 1, Frozen)), false)
}
