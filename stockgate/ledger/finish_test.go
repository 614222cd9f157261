package ledger

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
)

func logged(o *Options) *testkit.Log {
	w := &testkit.Log{}
	o.Log = logTo(w)
	return w
}

// holding returns a reserver with n holds, of the keys 0 to n−1.
func holding(t *testing.T, o Options, n int) (*Reserver, *fakeStore) {
	t.Helper()
	s := fakeStoreOf(testSKU, int64(n))
	d := opened(t, o, s, nil)
	testkit.Storm(n, n, func(i int) { d.buy(fmt.Sprint(i), fmt.Sprint(i)) })
	if s.stock(testSKU).Held != int64(n) {
		t.Fatalf("stock %+v", s.stock(testSKU))
	}
	return d, s
}

func TestSettle_SettlementsShareCallsOfTheirKind(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, testOptions(), 600)
		s.set(func(string, bool) error { time.Sleep(10 * time.Millisecond); return nil })
		for i := range 600 {
			op := Confirm
			if i%2 == 1 {
				op = Release
			}
			d.Settle(testSKU, fmt.Sprint(i), op)
		}
		time.Sleep(time.Second)
		if st := s.stock(testSKU); st.Sold != 300 || st.Held != 0 || s.count("finish") > 12 {
			t.Errorf("%d calls, stock %+v", s.count("finish"), st)
		}
	})
}

func TestSettle_SettlementIsRepeatedUntilTheStoreHasIt(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, testOptions(), 1)
		s.set(losing(1, 0, "finish"))
		d.Settle(testSKU, "0", Confirm)
		time.Sleep(time.Hour)
		if s.stock(testSKU).Sold != 0 || valueOf(d.retries) < 1000 {
			t.Fatalf("%d retries", valueOf(d.retries))
		}
		s.set(losing(0, 2, "finish")) // executed, every other reply lost
		time.Sleep(10 * time.Second)
		if s.stock(testSKU).Sold != 1 || len(d.capacity) != 0 {
			t.Errorf("stock %+v, %d owed", s.stock(testSKU), len(d.capacity))
		}
	})
}

func TestSettle_SettlementsOfOneSerialKeepTheirOrder(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, testOptions(), 50)
		s.set(losing(3, 4, "finish"))
		for i := range 50 {
			if i%3 == 0 {
				d.Settle(testSKU, fmt.Sprint(i), Release)
				continue
			}
			d.Settle(testSKU, fmt.Sprint(i), Confirm)
			d.Settle(testSKU, fmt.Sprint(i), Refund)
		}
		time.Sleep(time.Minute)
		if st := s.stock(testSKU); st.Free != 50 || len(d.capacity) != 0 {
			t.Errorf("stock %+v, %d owed", st, len(d.capacity))
		}
		for i := range 50 {
			if r := s.record(testSKU, fmt.Sprint(i)); r.Status != 'X' {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestSettle_SettlementThatFindsNoRoomIsWrittenToTheLog(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		o.MaxSettling = 2
		log := logged(&o)
		d, s := holding(t, o, 3)
		s.set(losing(1, 0, "finish"))
		for i := range 3 {
			d.Settle(testSKU, fmt.Sprint(i), Confirm)
		}
		if log.Count("serial=2 op=confirm") != 1 || log.Count("serial=") != 1 || valueOf(d.dropped) != 1 {
			t.Errorf("log %s", log.String())
		}
		s.set(nil)
		time.Sleep(time.Minute)
		if s.stock(testSKU).Sold != 2 {
			t.Errorf("stock %+v", s.stock(testSKU))
		}
	})
}

func TestSettle_CloseSettlesWhatIsOwed(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, testOptions(), 300)
		s.set(losing(2, 0, "finish"))
		for i := range 300 {
			d.Settle(testSKU, fmt.Sprint(i), Confirm)
		}
		d.Close(context.Background())
		if s.stock(testSKU).Sold != 300 || valueOf(d.dropped) != 0 {
			t.Errorf("stock %+v, %d spilled", s.stock(testSKU), valueOf(d.dropped))
		}
	})
}

func TestSettle_CloseWritesToTheLogWhatTheStoreDoesNotTake(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		log := logged(&o)
		d, s := holding(t, o, 3)
		s.set(losing(1, 0, "finish"))
		for i := range 3 {
			d.Settle(testSKU, fmt.Sprint(i), Release)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		d.Close(ctx)
		d.Settle(testSKU, "late", Confirm)
		for _, line := range []string{"serial=0 op=release", "serial=1 op=release", "serial=2 op=release",
			"serial=late op=confirm"} {
			if log.Count(line) != 1 {
				t.Errorf("no line %q in %s", line, log.String())
			}
		}
		if valueOf(d.dropped) != 4 || len(d.capacity) != 0 {
			t.Errorf("%d spilled, %d owed", valueOf(d.dropped), len(d.capacity))
		}
	})
}

func TestSettle_ContradictionsAreSaidAloud(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		log := logged(&o)
		d, _ := holding(t, o, 2)
		d.Settle(testSKU, "0", Release)
		d.Settle(testSKU, "0", Confirm) // the shop has an order for a unit that was given back
		d.Settle(testSKU, "1", Confirm)
		d.Settle(testSKU, "1", Release)
		d.Settle(testSKU, "2", Confirm)
		d.Settle("1002", "3", Confirm)
		synctest.Wait()
		for _, line := range []string{"the upstream must cancel the order", "use refund", "no such reservation",
			"its ledger is gone"} {
			if log.Count(line) != 1 {
				t.Errorf("no line %q in %s", line, log.String())
			}
		}
	})
}

// Few settlements share calls. Many come as fast as orders, which no bound for all SKUs holds up: 8 calls at once,
// beside the reservations of 512 clients, left four of five orders of 1,000 SKUs unsettled.
func TestSettle_ManyDoNotWaitForOthers(t *testing.T) {
	at(t, func(t *testing.T) {
		const few, many = 100, 1000
		s := newFakeStore()
		var calls atomic.Int64
		answer := make(chan struct{})
		s.set(func(op string, after bool) error {
			if op == "finish" && !after {
				calls.Add(1)
				<-answer
			}
			return nil
		})
		o := testOptions()
		o.MaxSettling = many
		d := opened(t, o, s, nil)
		for i := range many {
			if i == few {
				synctest.Wait()
				testkit.Want(t, "calls at once while few are owed", calls.Load(), maxSharing)
			}
			s.put(fmt.Sprint(i), 1, 0)
			d.Settle(fmt.Sprint(i), "a", Release)
		}
		synctest.Wait()
		if n := calls.Load(); n < many-manyOwed {
			t.Errorf("%d calls at once while %d are owed", n, many)
		}
		close(answer)
		testkit.Eventually(t, "all is settled", func() bool { return len(d.capacity) == 0 })
	})
}

// The shop has cancelled an order, and says so before the instance that sent it can tell the ledger of the answer.
// Ledger and shop agree: there is nothing to cancel.
func TestSettle_LateConfirmationOfARefundedOrderIsNoContradiction(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, other *Store) {
		o := testOptions()
		log := logged(&o)
		d := opened(t, o, other, nil)
		wants(t, "the order", d.buy("ann", "k"), Held)
		testkit.Want(t, "the shop cancels it", finishOne(t, other, Refund, "k"), Changed)
		d.Settle(testSKU, "k", Confirm)
		testkit.Eventually(t, "the ledger was told", func() bool { return len(d.capacity) == 0 })
		testkit.Want(t, "free", stockIn(t, other).Free, 5)
		if text := log.String(); strings.Contains(text, "does not agree") {
			t.Errorf("the log: %s", text)
		}
	})
}
