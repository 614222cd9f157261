package ledger

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sluice/internal/testkit"
)

func testOptions() Options {
	return Options{
		Secret:  []byte("sixteen bytes at least"),
		PerUser: 1000,
		Timeout: 20 * time.Second, // the machine may be busy; outages set their own
		MaxWait: 20 * time.Second,
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// opened returns a reserver that is closed with the test, and settles what it owes.
func opened(t testing.TB, o Options, s Calls, ask AskOrder) *Reserver {
	t.Helper()
	d, err := New(o, s, ask)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(context.Background()) })
	return d
}

func attempt(user, key string) Order {
	return Order{SKU: []byte(testSKU), User: []byte(user), Key: []byte(key), Quantity: 1}
}

func (d *Reserver) buy(user, key string) Outcome { return d.Reserve(d.o.Now(), attempt(user, key)) }

// wants fails unless the outcome has a code.
func wants(t *testing.T, what string, got Outcome, want Code) {
	t.Helper()
	if got.Code != want {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// at runs a law in a bubble with a clock of its own, and looks for goroutines that outlive it.
func at(t *testing.T, law func(t *testing.T)) {
	t.Helper()
	defer goleak.VerifyNone(
		t,
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
	) // of a test before
	synctest.Test(t, law)
}

// leakless fails t if a goroutine outlives it, and what was opened after this call.
func leakless(t *testing.T) {
	here := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, here) })
}

func TestReserver_StoreSeesTheStockAndNotTheCrowd(t *testing.T) {
	for what, key := range map[string]string{"derived": "", "keyed": "key-%d"} {
		t.Run(what, func(t *testing.T) {
			leakless(t)
			s := fakeStoreOf(testSKU, 10)
			reservers := []*Reserver{opened(t, testOptions(), s, nil), opened(t, testOptions(), s, nil)}
			var held, other atomic.Int64
			began := time.Now()
			testkit.Storm(50_000, 2_000, func(i int) {
				k := ""
				if key != "" {
					k = fmt.Sprintf(key, i)
				}
				switch out := reservers[i%2].buy(fmt.Sprint("user-", i), k); out.Code {
				case Held:
					held.Add(1)
				case Undecided:
				default:
					other.Add(1)
				}
			})
			if held.Load() != 10 || other.Load() != 0 || s.stock(testSKU).Held != 10 {
				t.Errorf("%d held, %d heard something else, stock %+v", held.Load(), other.Load(), s.stock(testSKU))
			}
			// On a busy machine the crowd takes a while: each of the two makes 50 look-up calls and a refresh a second.
			took := int(time.Since(began) / time.Second)
			if n := s.asked(); n >= 500+2*51*took {
				t.Errorf("%d calls in %d s", n, took)
			}
			t.Logf("%d calls with %d orders, at most %d", s.asked(), s.items, s.peak)
		})
	}
}

func TestReserver_OneUserHasOneOrder(t *testing.T) {
	s := fakeStoreOf(testSKU, 1000)
	o := testOptions()
	o.PerUser = 1
	reservers := []*Reserver{opened(t, o, s, nil), opened(t, o, s, nil)}
	var held atomic.Int64
	testkit.Storm(200, 200, func(i int) {
		switch out := reservers[i%2].buy("7", ""); out.Code {
		case Held:
			held.Add(1)
		case ReplayHeld:
		default:
			t.Errorf("heard %v", out)
		}
	})
	if held.Load() != 1 || s.stock(testSKU).Held != 1 {
		t.Errorf("%d held, stock %+v", held.Load(), s.stock(testSKU))
	}
}

func TestReserver_BatchesShareCalls(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 1000)
		var under, most atomic.Int64
		s.set(func(op string, after bool) error {
			if op == "reserve" && !after {
				if n := under.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(10 * time.Millisecond)
				under.Add(-1)
			}
			return nil
		})
		d := opened(t, testOptions(), s, nil)
		testkit.Storm(1000, 1000, func(i int) { wants(t, "order", d.buy(fmt.Sprint(i), ""), Held) })
		if s.peak > 64 || most.Load() != 2 || s.asked() > 18 {
			t.Errorf("%d calls, at most %d orders, %d at once", s.asked(), s.peak, most.Load())
		}
	})
}

func TestReserver_TriesNeverExceedTheHint(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 20)
		var d *Reserver
		s.set(func(op string, after bool) error {
			if l := d.skus.Find([]byte(testSKU)); op == "reserve" && !after {
				l.mu.Lock()
				if v := l.stock.Load(); v != nil && l.trying > v.Free {
					t.Errorf("%d tries for %d units", l.trying, v.Free)
				}
				l.mu.Unlock()
			}
			time.Sleep(time.Millisecond)
			return nil
		})
		d = opened(t, testOptions(), s, nil)
		wants(t, "first", d.buy("first", ""), Held)
		testkit.Storm(500, 500, func(i int) { d.buy(fmt.Sprint(i), "") })
		if s.items > 20 {
			t.Errorf("%d orders reached the store for 20 units", s.items)
		}
	})
}

func TestReserver_QueueIsBoundedInNumberAndAge(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 1000)
		s.set(func(string, bool) error { time.Sleep(time.Second); return nil })
		o := testOptions()
		o.MaxQueue, o.MaxWait = 3, 500*time.Millisecond
		d := opened(t, o, s, nil)
		codes := make(chan Code, 10)
		for i := range 6 {
			go func() { codes <- d.buy(fmt.Sprint(i), "").Code }()
			synctest.Wait()
		}
		wants(t, "the fifth", Outcome{Code: <-codes}, Overloaded)
		wants(t, "the sixth", Outcome{Code: <-codes}, Overloaded)
		count := map[Code]int{}
		for range 4 {
			count[<-codes]++
		}
		if count[Held] != 1 || count[Overloaded] != 3 || s.stock(testSKU).Held != 1 {
			t.Errorf("%v, stock %+v", count, s.stock(testSKU))
		}
	})
}

func TestReserver_LargerOrdersThanTheStockAreSoldOutAndSmallerOnesNot(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 3)
		d := opened(t, testOptions(), s, nil)
		wants(t, "one", d.buy("1", ""), Held)
		three := attempt("2", "")
		three.Quantity = 3
		wants(t, "three", d.Reserve(d.o.Now(), three), Undecided)
		wants(t, "one more", d.buy("3", ""), Held)
		if n := s.asked(); n != 3 { // one of them since the three could have been bought before
			t.Errorf("%d calls", n)
		}
	})
}

func TestReserver_InvalidOrdersDoNotReachTheStore(t *testing.T) {
	s := fakeStoreOf(testSKU, 3)
	d := opened(t, testOptions(), s, nil)
	for _, quantity := range []int64{0, -1, MaxQuantity + 1} {
		o := attempt("1", "")
		o.Quantity = quantity
		wants(t, "quantity", d.Reserve(0, o), Invalid)
	}
	for _, key := range []string{" ", "a b", "ä", "\x7f", ".", "..", string(make([]byte, 129))} {
		wants(t, key, d.buy("1", key), Invalid)
	}
	if s.asked() != 0 {
		t.Error("the store was asked")
	}
}

func TestReserver_UnknownSKUIsRememberedAndForgotten(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newFakeStore()
		d := opened(t, testOptions(), s, nil)
		for range 100 {
			wants(t, "unknown", d.buy("1", "k"), UnknownSKU)
		}
		if s.asked() != 1 {
			t.Errorf("%d calls", s.asked())
		}
		time.Sleep(20 * time.Second)
		if d.skus.Find([]byte(testSKU)) != nil {
			t.Error("still remembered")
		}
		s.put(testSKU, 1, 0)
		wants(t, "made since", d.buy("1", "k"), Held)
	})
}

func TestReserver_RejectsOrdersAfterClose(t *testing.T) {
	leakless(t)
	s := fakeStoreOf(testSKU, 3)
	d, err := New(testOptions(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Close(context.Background())
	wants(t, "closed", d.buy("1", ""), Overloaded)
}
