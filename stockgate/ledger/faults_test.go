package ledger

// Time in this file is virtual (testing/synctest).

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// withOrder returns a reserver that holds the order "a", its store and its log.
func withOrder(t *testing.T) (d *Reserver, s *fakeStore, said *testkit.Log) {
	o := testOptions()
	said, s = logged(&o), fakeStoreOf(testSKU, 5)
	d = opened(t, o, s, nil)
	wants(t, "the first order", d.buy("a", "a"), Held)
	return d, s, said
}

// A settlement is on its way when the store stops to take orders. Its answer, which comes later, is no sign that the
// store takes them again; that of a later call is.
func TestFaults_AnswerToAnEarlierCallEndsNone(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s, said := withOrder(t)
		var broken atomic.Bool
		broken.Store(true)
		s.set(func(op string, after bool) error {
			switch {
			case op == "finish" && after:
				time.Sleep(time.Second) // of synctest
			case op == "reserve" && !after && broken.Load():
				return errNetwork
			}
			return nil
		})
		d.Settle(testSKU, "a", Confirm)
		time.Sleep(100 * time.Millisecond) // of synctest
		d.buy("b", "b")
		time.Sleep(2 * time.Second) // of synctest
		if faults, ends := said.Count("takes no orders"), said.Count("takes orders again"); faults != 1 || ends != 0 {
			t.Errorf("%d faults and %d ends are logged:\n%s", faults, ends, said.String())
		}
		broken.Store(false)
		wants(t, "an order after the fault", d.buy("c", "c"), Held)
		synctest.Wait() // the order is answered before the end is logged
		if n := said.Count("takes orders again"); n != 1 {
			t.Errorf("the end of the fault is logged %d times:\n%s", n, said.String())
		}
	})
}

// An order is lost on its way, and found out to be only after a later call was answered: the store takes orders.
func TestFaults_FailureOfAnEarlierCallIsNone(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		o.MaxBatch, o.Tries = 1, 1
		said, s := logged(&o), fakeStoreOf(testSKU, 5)
		d := opened(t, o, s, nil)
		wants(t, "the first order", d.buy("a", "a"), Held)
		var lost atomic.Bool
		s.set(func(op string, after bool) error {
			if op == "reserve" && !after && !lost.Swap(true) {
				time.Sleep(200 * time.Millisecond) // of synctest
				return errNetwork
			}
			return nil
		})
		found := make(chan Outcome)
		go func() { found <- d.buy("b", "b") }()
		time.Sleep(100 * time.Millisecond) // of synctest
		wants(t, "an order that is sent later", d.buy("c", "c"), Held)
		wants(t, "the order that is lost", <-found, Unsure)
		time.Sleep(2 * time.Second) // of synctest
		if n := said.Count("takes no orders"); n != 0 {
			t.Errorf("%d faults are logged:\n%s", n, said.String())
		}
	})
}

// A store that settles may take no orders, and the other way round: the answers to one kind of calls tell nothing of
// the other.
func TestFaults_OrdersAndSettlementsHaveTheirOwn(t *testing.T) {
	for _, c := range []struct{ fails, works, begins, ends string }{
		{"reserve", "finish", "takes no orders", "takes orders again"},
		{"finish", "reserve", "settles no orders", "settles orders again"},
	} {
		t.Run(c.fails, func(t *testing.T) {
			at(t, func(t *testing.T) {
				o := testOptions()
				o.Tries = 1
				said, s := logged(&o), fakeStoreOf(testSKU, 100)
				d := opened(t, o, s, nil)
				var broken, worked atomic.Bool
				s.set(func(op string, after bool) error {
					if worked.Store(worked.Load() || op == c.works && after); op == c.fails && broken.Load() {
						return errNetwork
					}
					return nil
				})
				for i := range 40 {
					wants(t, "an order", d.buy(strconv.Itoa(i), strconv.Itoa(i)), Held)
				}
				broken.Store(true)
				for i := range 40 {
					d.Settle(testSKU, strconv.Itoa(i), Confirm)
					d.buy("late"+strconv.Itoa(i), "late"+strconv.Itoa(i))
					time.Sleep(50 * time.Millisecond) // of synctest
				}
				if begins, ends := said.Count(c.begins), said.Count(c.ends); begins != 1 || ends != 0 || !worked.Load() {
					t.Errorf("%d faults and %d ends are logged:\n%s", begins, ends, said.String())
				}
				broken.Store(false)
				d.buy("last", "last")
				time.Sleep(time.Minute) // of synctest
				if begins, ends := said.Count(c.begins), said.Count(c.ends); begins != 1 || ends != 1 {
					t.Errorf("%d faults and %d ends are logged in the end:\n%s", begins, ends, said.String())
				}
			})
		})
	}
}

// A ledger that is gone, or has lost something, answers too: the fault is over when one is open.
func TestFaults_OnlyAnOpenLedgerEndsThem(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s, said := withOrder(t)
		s.set(func(string, bool) error { return errNetwork })
		d.Settle(testSKU, "a", Confirm)
		d.buy("b", "b")
		time.Sleep(time.Second) // of synctest
		s.set(nil)
		gone := s.skus[testSKU]
		for i, state := range []State{"", Frozen, Lost, Verifying} {
			s.mu.Lock()
			if gone.stock.State = state; state == "" {
				delete(s.skus, testSKU)
			} else {
				s.skus[testSKU] = gone
			}
			s.mu.Unlock()
			before := s.count("reserve")
			for range 100 {
				d.buy("c"+strconv.Itoa(i), "c"+strconv.Itoa(i))
				time.Sleep(50 * time.Millisecond) // of synctest
			}
			testkit.Want(t, "asked when it is "+string(state), s.count("reserve") > before, true)
			testkit.Want(t, "takes orders again when it is "+string(state), said.Count("takes orders again"), 0)
		}
		testkit.Want(t, "faults", said.Count("takes no orders"), 1)
		s.mu.Lock()
		gone.stock.State = On
		s.mu.Unlock()
		for range 100 {
			d.buy("d", "d")
			time.Sleep(50 * time.Millisecond) // of synctest
		}
		testkit.Want(t, "takes orders again", said.Count("takes orders again"), 1)
	})
}

// The journal has these settlements, so that an operator needs the SKU and the way out, and no line for each order.
func TestFaults_SettlementsOfALedgerThatIsGoneAreOneLine(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		said := logged(&o)
		d, s := holding(t, o, 40)
		gone := s.skus[testSKU]
		s.mu.Lock()
		delete(s.skus, testSKU)
		s.mu.Unlock()
		for i := range 30 {
			d.Settle(testSKU, strconv.Itoa(i), Confirm)
			time.Sleep(50 * time.Millisecond) // of synctest
		}
		testkit.Want(t, "lines", strings.Count(said.String(), "\n"), 1)
		testkit.Want(t, "the way out", said.Count("sluice stock recover "+testSKU), 1)
		s.mu.Lock()
		s.skus[testSKU] = gone
		s.mu.Unlock()
		d.Settle(testSKU, "39", Confirm)
		time.Sleep(time.Second) // of synctest
		testkit.Want(t, "the end", said.Count("settles orders again"), 1)
	})
}

func TestFaults_OpenBreakerIsAdvisedOnAsItsLastErrorIs(t *testing.T) {
	for last, want := range map[string]string{
		"dial tcp 10.0.0.1:6379: connect: connection refused": "start Redis",
		"read tcp 10.0.0.1:6379: i/o timeout":                 "SLOWLOG",
		"context deadline exceeded":                           "SLOWLOG",
		"OOM command not allowed":                             "maxmemory",
	} {
		if got := adviceFor(fmt.Errorf("%w: %s", redisconn.ErrBreakerOpen, last)); !strings.Contains(got, want) {
			t.Errorf("%s: %s", last, got)
		}
	}
}
