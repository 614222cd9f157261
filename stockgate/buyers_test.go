package stockgate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/layout"
)

// withBuyers returns a running gate over a real Redis with a set of buyers, and 3 of SKU 1001.
func withBuyers(t *testing.T, server *redistest.Server, o Options) (*Gate, *Redis) {
	t.Helper()
	s := dial(t, server, layout.Options{Type: layout.CounterUsers, Key: "{$sku}:stock", UsersKey: "{$sku}:uids"})
	testkit.Check(t, s.Set(t.Context(), "1001", 3))
	o.Bought = s.Bought
	return open(t, o, s), s
}

func TestBuyers_OnlyABuyerIsADuplicate(t *testing.T) {
	server := redistest.Start(t)
	o := options()
	g, _ := withBuyers(t, server, o)
	setUp(t, server, "SADD {1001}:uids 7", "SADD {1002}:uids 8", "SET {1002}:stock 1")
	enter := func(user string) reject.Reason { return g.Enter(o.Now(), []byte("1001"), []byte(user)) }
	for user, want := range map[string]reject.Reason{"7": reject.Duplicate, "8": reject.Admitted, "77": reject.Admitted,
		"": reject.Admitted, "7 ": reject.Admitted} {
		if got := enter(user); got != want {
			t.Errorf("user %q: %v, want %v", user, got, want)
		}
	}
	setUp(t, server, "SADD {1001}:uids 8", "SREM {1001}:uids 7")
	if got := enter("8"); got != reject.Duplicate {
		t.Errorf("a user who has bought since: %v", got)
	}
	if got := enter("7"); got != reject.Admitted {
		t.Errorf("a user who gave it back: %v", got)
	}
}

func TestBuyers_RejectedRequestAsksForNoBuyer(t *testing.T) {
	server := redistest.Start(t)
	o := options()
	o.PerUnit, o.Refresh, o.SoldOutMemory = 1, time.Hour, time.Hour
	g, s := withBuyers(t, server, o)
	testkit.Check(t, s.Set(t.Context(), "empty", 0))
	testkit.Check(t, s.Set(t.Context(), "one", 1))
	user := []byte("7")
	if got := g.Enter(o.Now(), []byte("one"), user); got != reject.Admitted {
		t.Fatalf("the first: %v", got)
	}
	for range 1000 {
		for sku, want := range map[string]reject.Reason{"empty": reject.SoldOut, "one": reject.Concurrency,
			"none": reject.UnknownSKU} {
			if got := g.Enter(o.Now(), []byte(sku), user); got != want {
				t.Fatalf("%s: %v, want %v", sku, got, want)
			}
		}
	}
	if n := server.Calls("sismember"); n != 1 {
		t.Fatalf("one admitted and 3,000 rejected: %d looks at the buyers, want 1", n)
	}
}

func TestBuyers_DuplicateTakesNoPlaceOfAUnit(t *testing.T) {
	server := redistest.Start(t)
	o := options()
	o.PerUnit = 1
	g, _ := withBuyers(t, server, o)
	setUp(t, server, "SADD {1001}:uids 7")
	for range 10 {
		if got := g.Enter(o.Now(), []byte("1001"), []byte("7")); got != reject.Duplicate {
			t.Fatalf("enter: %v", got)
		}
	}
	if n := g.table.Find([]byte("1001")).inFlight.Load(); n != 0 {
		t.Fatalf("%d in flight after duplicates alone", n)
	}
}

func TestBuyers_SetOfBuyersThatIsNoneIsDecidedByOnErrorAndNamedOnce(t *testing.T) {
	server := redistest.Start(t)
	for _, allow := range []bool{false, true} {
		var log bytes.Buffer
		o := options()
		o.AllowOnError, o.PerUnit = allow, 2
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		g, _ := withBuyers(t, server, o)
		setUp(t, server, "SET {1001}:uids 7")
		want, inFlight := reject.StockError, int64(0)
		if allow {
			want, inFlight = reject.Admitted, 3
		}
		for range 3 {
			if got := g.Enter(o.Now(), []byte("1001"), []byte("7")); got != want {
				t.Errorf("allow %v: %v, want %v", allow, got, want)
			}
		}
		if n := g.table.Find([]byte("1001")).inFlight.Load(); n != inFlight {
			t.Errorf("allow %v: %d in flight, want %d", allow, n, inFlight)
		}
		g.Close()
		if !strings.Contains(log.String(), "its orders are decided by stock.on_error") ||
			!strings.Contains(log.String(), "sluice check --online") {
			t.Errorf("without its consequence and the way out:\n%s", &log)
		}
		if n := strings.Count(log.String(), "{1001}:uids"); n != 1 {
			t.Errorf("the key is named %d times, want once:\n%s", n, &log)
		}
	}
}

// asking returns a gate that has learnt of one unit of SKU 1001, and asks ask for buyers.
func asking(t *testing.T, o Options, ask func(context.Context, []Buyer) error) *Gate {
	t.Helper()
	s := NewMemory()
	testkit.Check(t, s.Set(t.Context(), "1001", 1))
	o.Bought = ask
	g := open(t, o, s)
	if got := g.Enter(o.Now(), []byte("1001"), nil); got != reject.Admitted {
		t.Fatalf("enter: %v", got)
	}
	return g
}

func TestBuyers_WhoComesDuringARoundTripSharesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		var rounds []int
		o := options()
		g := asking(t, o, func(_ context.Context, all []Buyer) error {
			rounds = append(rounds, len(all)) // the gate asks one at a time
			<-answer
			for i := range all {
				all[i].Bought = string(all[i].User) == "13"
			}
			return nil
		})
		var all sync.WaitGroup
		for user := range askedAtOnce + 20 {
			all.Go(func() {
				want := reject.Admitted
				if user == 13 {
					want = reject.Duplicate
				}
				if got := g.Enter(o.Now(), []byte("1001"), fmt.Append(nil, user)); got != want {
					t.Errorf("user %d: %v, want %v", user, got, want)
				}
			})
			synctest.Wait()
		}
		close(answer)
		all.Wait()
		if got := fmt.Sprint(rounds); got != fmt.Sprintf("[1 %d 19]", askedAtOnce) {
			t.Errorf("round trips of %s buyers", got)
		}
	})
}

func TestBuyers_WaitForABuyerIsBoundedAndALateAnswerIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		var users []string
		o := options()
		o.Wait = 100 * time.Millisecond
		g := asking(t, o, func(_ context.Context, all []Buyer) error {
			<-answer
			for i := range all {
				users = append(users, string(all[i].User))
				all[i].Bought = users[len(users)-1] == "old"
			}
			return nil
		})
		began, user := time.Now(), []byte("old")
		if got := g.Enter(o.Now(), []byte("1001"), user); got != reject.StockError {
			t.Errorf("an answer that does not come: %v", got)
		}
		if waited := time.Since(began); waited != o.Wait {
			t.Errorf("waited %v, want %v", waited, o.Wait)
		}
		copy(user, "own") // the request's bytes are another's now
		close(answer)
		synctest.Wait()
		if fmt.Sprint(users) != "[old]" {
			t.Errorf("asked for %q", users)
		}
		if got := g.Enter(o.Now(), []byte("1001"), []byte("new")); got != reject.Admitted {
			t.Errorf("the next one: %v", got)
		}
	})
}

func TestBuyers_NoBuyerIsAskedForWhileTheSourceIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.AllowOnError = true
		asked := 0
		g := asking(t, o, func(context.Context, []Buyer) error { asked++; return nil })
		g.poller.health.record(1, errors.New("gone")) // no time passes: Redis is not found again
		if got := g.Enter(o.Now(), []byte("1001"), []byte("7")); got != reject.Admitted || g.fallbacks.allowed.Load() != 1 {
			t.Errorf("enter: %v, decided by on_error %d times", got, g.fallbacks.allowed.Load())
		}
		synctest.Wait()
		if asked != 0 {
			t.Errorf("asked %d times", asked)
		}
	})
}

func TestBuyers_StockThatIsDecidedByOnErrorIsNotAskedForBuyers(t *testing.T) {
	server := redistest.Start(t)
	o := options()
	o.AllowOnError = true
	g, _ := withBuyers(t, server, o)
	setUp(t, server, "SET {x}:stock many", "SADD {x}:uids 7")
	if got := g.Enter(o.Now(), []byte("x"), []byte("7")); got != reject.Admitted || g.fallbacks.allowed.Load() != 1 {
		t.Errorf("enter: %v, decided by on_error %d times", got, g.fallbacks.allowed.Load())
	}
	if n := server.Calls("sismember"); n != 0 {
		t.Errorf("%d looks at the buyers", n)
	}
}

func TestBuyers_ErrorOfARoundTripIsNoAnswer(t *testing.T) {
	o := options()
	g := asking(t, o, func(context.Context, []Buyer) error { return errors.New("gone") })
	if got := g.Enter(o.Now(), []byte("1001"), []byte("7")); got != reject.StockError {
		t.Errorf("enter: %v", got)
	}
	g.Close()
	if got := g.buyers.membershipOf("1001", []byte("7")); got != undetermined {
		t.Errorf("after Close: %v", got)
	}
}

func TestBuyers_AskingForABuyerAllocatesNothing(t *testing.T) {
	o := options()
	o.Refresh = time.Hour
	g := asking(t, o, func(context.Context, []Buyer) error { return nil })
	sku, user := []byte("1001"), []byte("7")
	n := testing.AllocsPerRun(1000, func() {
		if got := g.Enter(0, sku, user); got != reject.Admitted {
			t.Fatalf("enter: %v", got)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEnterWithBuyers(b *testing.B) {
	server := redistest.Start(b)
	s := dial(b, server, layout.Options{Type: layout.CounterUsers, Key: "{$sku}:stock", UsersKey: "{$sku}:uids"})
	testkit.Check(b, s.Set(b.Context(), "1001", 1<<40))
	o := options()
	o.Bought = s.Bought
	g := open(b, o, s)
	b.SetParallelism(64)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			g.Enter(o.Now(), []byte("1001"), []byte("7"))
		}
	})
	b.ReportMetric(float64(b.N)/float64(s.metrics.calls[bought].Load()), "buyers/trip")
}
