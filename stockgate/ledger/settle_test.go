package ledger

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// written is a log that tests read.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.text.String(), what)
}

func logged(o *DeskOptions) *written {
	w := &written{}
	o.Log = logTo(w)
	return w
}

func logTo(w *written) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// holding returns a desk with n holds, of the keys 0 to n−1.
func holding(t *testing.T, o DeskOptions, n int) (*Desk, *shelf) {
	t.Helper()
	s := shelfOf(sku, int64(n))
	d := opened(t, o, s, nil)
	storm(n, n, func(i int) { d.buy(fmt.Sprint(i), fmt.Sprint(i)) })
	if s.stock(sku).Held != int64(n) {
		t.Fatalf("stock %+v", s.stock(sku))
	}
	return d, s
}

func TestSettlementsShareCallsOfTheirKind(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, deskOptions(), 600)
		s.set(func(string, bool) error { time.Sleep(10 * time.Millisecond); return nil })
		for i := range 600 {
			op := Confirm
			if i%2 == 1 {
				op = Release
			}
			d.Settle(sku, Item{Serial: fmt.Sprint(i)}, op)
		}
		time.Sleep(time.Second)
		if st := s.stock(sku); st.Sold != 300 || st.Held != 0 || s.count("finish") > 6 {
			t.Errorf("%d calls, stock %+v", s.count("finish"), st)
		}
	})
}

func TestSettlementIsRepeatedUntilTheStoreHasIt(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, deskOptions(), 1)
		s.set(losing(1, 0, "finish"))
		d.Settle(sku, Item{Serial: "0"}, Confirm)
		time.Sleep(time.Hour)
		if s.stock(sku).Sold != 0 || d.retries.Load() < 1000 {
			t.Fatalf("%d retries", d.retries.Load())
		}
		s.set(losing(0, 2, "finish")) // executed, every other reply lost
		time.Sleep(10 * time.Second)
		if s.stock(sku).Sold != 1 || len(d.room) != 0 {
			t.Errorf("stock %+v, %d owed", s.stock(sku), len(d.room))
		}
	})
}

func TestSettlementsOfOneSerialKeepTheirOrder(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, deskOptions(), 50)
		s.set(losing(3, 4, "finish"))
		for i := range 50 {
			if i%3 == 0 {
				d.Settle(sku, Item{Serial: fmt.Sprint(i)}, Release)
				continue
			}
			d.Settle(sku, Item{Serial: fmt.Sprint(i)}, Confirm)
			d.Settle(sku, Item{Serial: fmt.Sprint(i)}, Refund)
		}
		time.Sleep(time.Minute)
		if st := s.stock(sku); st.Free != 50 || len(d.room) != 0 {
			t.Errorf("stock %+v, %d owed", st, len(d.room))
		}
		for i := range 50 {
			if r := s.record(sku, fmt.Sprint(i)); r.Status != 'X' {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestSettlementThatFindsNoRoomIsWrittenToTheLog(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		o.MaxSettling = 2
		log := logged(&o)
		d, s := holding(t, o, 3)
		s.set(losing(1, 0, "finish"))
		for i := range 3 {
			d.Settle(sku, Item{Serial: fmt.Sprint(i)}, Confirm)
		}
		if log.count("serial=2 op=confirm") != 1 || log.count("serial=") != 1 || d.spilled.Load() != 1 {
			t.Errorf("log %s", log.text.String())
		}
		s.set(nil)
		time.Sleep(time.Minute)
		if s.stock(sku).Sold != 2 {
			t.Errorf("stock %+v", s.stock(sku))
		}
	})
}

func TestCloseSettlesWhatIsOwed(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s := holding(t, deskOptions(), 300)
		s.set(losing(2, 0, "finish"))
		for i := range 300 {
			d.Settle(sku, Item{Serial: fmt.Sprint(i)}, Confirm)
		}
		d.Close(context.Background())
		if s.stock(sku).Sold != 300 || d.spilled.Load() != 0 {
			t.Errorf("stock %+v, %d spilled", s.stock(sku), d.spilled.Load())
		}
	})
}

func TestCloseWritesToTheLogWhatTheStoreDoesNotTake(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		log := logged(&o)
		d, s := holding(t, o, 3)
		s.set(losing(1, 0, "finish"))
		for i := range 3 {
			d.Settle(sku, Item{Serial: fmt.Sprint(i)}, Release)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		d.Close(ctx)
		d.Settle(sku, Item{Serial: "late"}, Confirm)
		for _, line := range []string{"serial=0 op=release", "serial=1 op=release", "serial=2 op=release", "serial=late op=confirm"} {
			if log.count(line) != 1 {
				t.Errorf("no line %q in %s", line, log.text.String())
			}
		}
		if d.spilled.Load() != 4 || len(d.room) != 0 {
			t.Errorf("%d spilled, %d owed", d.spilled.Load(), len(d.room))
		}
	})
}

func TestContradictionsAreSaidAloud(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		log := logged(&o)
		d, _ := holding(t, o, 2)
		d.Settle(sku, Item{Serial: "0"}, Release)
		d.Settle(sku, Item{Serial: "0"}, Confirm) // the shop has an order for a unit that was given back
		d.Settle(sku, Item{Serial: "1"}, Confirm)
		d.Settle(sku, Item{Serial: "1"}, Release)
		d.Settle(sku, Item{Serial: "2"}, Confirm)
		d.Settle("1002", Item{Serial: "3"}, Confirm)
		synctest.Wait()
		for _, line := range []string{"the shop must cancel the order", "use refund", "no such reservation", "no ledger"} {
			if log.count(line) != 1 {
				t.Errorf("no line %q in %s", line, log.text.String())
			}
		}
	})
}

func TestMoreSettleAtOnceWhileMuchIsOwed(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newShelf()
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
		o := deskOptions()
		o.MaxSettling = 800
		d := opened(t, o, s, nil)
		for i := range 500 {
			s.put(fmt.Sprint(i), 1, 0)
		}
		for _, c := range []struct{ owed, most int }{{100, asideAtOnce}, {500, asideAtOnce + moreAtOnce}} {
			most.Store(0)
			for i := range c.owed {
				d.Settle(fmt.Sprint(i), Item{Serial: "a"}, Release)
			}
			until(t, "all is settled", func() bool { return len(d.room) == 0 })
			if got := int(most.Load()); got > c.most || c.owed > 100 && got <= asideAtOnce {
				t.Errorf("%d settle at once while %d are owed", got, c.owed)
			}
		}
	})
}
