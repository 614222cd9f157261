package ledger

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

func logged(o *Options) *testkit.Log {
	w := &testkit.Log{}
	o.Log = ledgertest.LogTo(w)
	return w
}

// holding returns a reserver with n holds, of the keys 0 to n−1.
func holding(t *testing.T, o Options, n int) (*Reserver, *fakeStore) {
	t.Helper()
	s := fakeStoreOf(ledgertest.SKU, int64(n))
	d := opened(t, o, s, nil)
	ledgertest.Storm(n, n, func(i int) { d.buy(fmt.Sprint(i), fmt.Sprint(i)) })
	if s.stock(ledgertest.SKU).Held != int64(n) {
		t.Fatalf("stock %+v", s.stock(ledgertest.SKU))
	}
	return d, s
}

func TestSettle_SettlementsShareCallsOfTheirKind(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, testOptions(), 600)
		s.set(func(string, bool) error { time.Sleep(10 * time.Millisecond); return nil })
		for i := range 600 {
			op := protocol.Confirm
			if i%2 == 1 {
				op = protocol.Release
			}
			d.Settle(ledgertest.SKU, protocol.Item{Serial: fmt.Sprint(i)}, op)
		}
		time.Sleep(time.Second)
		if st := s.stock(ledgertest.SKU); st.Sold != 300 || st.Held != 0 || s.count("finish") > 12 {
			t.Errorf("%d calls, stock %+v", s.count("finish"), st)
		}
	})
}

func TestSettle_SettlementIsRepeatedUntilTheStoreHasIt(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, testOptions(), 1)
		s.set(losing(1, 0, "finish"))
		d.Settle(ledgertest.SKU, protocol.Item{Serial: "0"}, protocol.Confirm)
		time.Sleep(time.Hour)
		if s.stock(ledgertest.SKU).Sold != 0 || ledgertest.Value(d.retries) < 1000 {
			t.Fatalf("%d retries", ledgertest.Value(d.retries))
		}
		s.set(losing(0, 2, "finish")) // executed, every other reply lost
		time.Sleep(10 * time.Second)
		if s.stock(ledgertest.SKU).Sold != 1 || len(d.capacity) != 0 {
			t.Errorf("stock %+v, %d owed", s.stock(ledgertest.SKU), len(d.capacity))
		}
	})
}

func TestSettle_SettlementsOfOneSerialKeepTheirOrder(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, testOptions(), 50)
		s.set(losing(3, 4, "finish"))
		for i := range 50 {
			if i%3 == 0 {
				d.Settle(ledgertest.SKU, protocol.Item{Serial: fmt.Sprint(i)}, protocol.Release)
				continue
			}
			d.Settle(ledgertest.SKU, protocol.Item{Serial: fmt.Sprint(i)}, protocol.Confirm)
			d.Settle(ledgertest.SKU, protocol.Item{Serial: fmt.Sprint(i)}, protocol.Refund)
		}
		time.Sleep(time.Minute)
		if st := s.stock(ledgertest.SKU); st.Free != 50 || len(d.capacity) != 0 {
			t.Errorf("stock %+v, %d owed", st, len(d.capacity))
		}
		for i := range 50 {
			if r := s.record(ledgertest.SKU, fmt.Sprint(i)); r.Status != 'X' {
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
			d.Settle(ledgertest.SKU, protocol.Item{Serial: fmt.Sprint(i)}, protocol.Confirm)
		}
		if log.Count("serial=2 op=confirm") != 1 || log.Count("serial=") != 1 || ledgertest.Value(d.dropped) != 1 {
			t.Errorf("log %s", log.String())
		}
		s.set(nil)
		time.Sleep(time.Minute)
		if s.stock(ledgertest.SKU).Sold != 2 {
			t.Errorf("stock %+v", s.stock(ledgertest.SKU))
		}
	})
}

func TestSettle_CloseSettlesWhatIsOwed(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, testOptions(), 300)
		s.set(losing(2, 0, "finish"))
		for i := range 300 {
			d.Settle(ledgertest.SKU, protocol.Item{Serial: fmt.Sprint(i)}, protocol.Confirm)
		}
		d.Close(context.Background())
		if s.stock(ledgertest.SKU).Sold != 300 || ledgertest.Value(d.dropped) != 0 {
			t.Errorf("stock %+v, %d spilled", s.stock(ledgertest.SKU), ledgertest.Value(d.dropped))
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
			d.Settle(ledgertest.SKU, protocol.Item{Serial: fmt.Sprint(i)}, protocol.Release)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		d.Close(ctx)
		d.Settle(ledgertest.SKU, protocol.Item{Serial: "late"}, protocol.Confirm)
		for _, line := range []string{"serial=0 op=release", "serial=1 op=release", "serial=2 op=release",
			"serial=late op=confirm"} {
			if log.Count(line) != 1 {
				t.Errorf("no line %q in %s", line, log.String())
			}
		}
		if ledgertest.Value(d.dropped) != 4 || len(d.capacity) != 0 {
			t.Errorf("%d spilled, %d owed", ledgertest.Value(d.dropped), len(d.capacity))
		}
	})
}

func TestSettle_ContradictionsAreSaidAloud(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		log := logged(&o)
		d, _ := holding(t, o, 2)
		d.Settle(ledgertest.SKU, protocol.Item{Serial: "0"}, protocol.Release)
		d.Settle(
			ledgertest.SKU,
			protocol.Item{Serial: "0"},
			protocol.Confirm,
		) // the shop has an order for a unit that was given back
		d.Settle(ledgertest.SKU, protocol.Item{Serial: "1"}, protocol.Confirm)
		d.Settle(ledgertest.SKU, protocol.Item{Serial: "1"}, protocol.Release)
		d.Settle(ledgertest.SKU, protocol.Item{Serial: "2"}, protocol.Confirm)
		d.Settle("1002", protocol.Item{Serial: "3"}, protocol.Confirm)
		synctest.Wait()
		for _, line := range []string{"the upstream must cancel the order", "use refund", "no such reservation",
			"no ledger"} {
			if log.Count(line) != 1 {
				t.Errorf("no line %q in %s", line, log.String())
			}
		}
	})
}

func TestSettle_MoreSettleAtOnceWhileMuchIsOwed(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newFakeStore()
		var now, most atomic.Int64
		s.set(func(op string, after bool) error {
			if op != "finish" {
				return nil
			}
			if after {
				now.Add(-1)
				return nil
			}
			for n := now.Add(1); ; {
				if was := most.Load(); n <= was || most.CompareAndSwap(was, n) {
					break
				}
			}
			time.Sleep(100 * time.Millisecond) // all at the same time
			return nil
		})
		o := testOptions()
		o.MaxSettling = 800
		d := opened(t, o, s, nil)
		for i := range 500 {
			s.put(fmt.Sprint(i), 1, 0)
		}
		for _, c := range []struct{ owed, most int }{{4, 4}, {500, maxSettling}} {
			most.Store(0)
			for i := range c.owed {
				d.Settle(fmt.Sprint(i), protocol.Item{Serial: "a"}, protocol.Release)
			}
			ledgertest.Until(t, "all is settled", func() bool { return len(d.capacity) == 0 })
			if got := int(most.Load()); got != c.most {
				t.Errorf("%d settle at once while %d are owed", got, c.owed)
			}
		}
	})
}
