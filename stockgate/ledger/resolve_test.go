package ledger

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// oracle answers with what it is told, and counts.
type oracle struct {
	verdict OrderStatus
	err     error
	asked   atomic.Int64
}

func (o *oracle) Ask(context.Context, string, string) (OrderStatus, error) {
	o.asked.Add(1)
	return o.verdict, o.err
}

// unknowns is how many holds d asks the upstream about.
func unknowns(d *Reserver) int64 { return valueOf(d.unknown.WithLabelValues(otherSKUs)) }

// abandoned returns a fakeStore with one hold, "k", that no reserver knows, overdue in hold.
func abandoned(t *testing.T, o Options) *fakeStore {
	t.Helper()
	s := fakeStoreOf(testSKU, 1)
	d, err := New(o, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "hold", d.buy("7", "k"), Held)
	d.Close(t.Context())
	return s
}

func TestResolve_OverdueHoldIsDecidedByTheShopBehindItsFence(t *testing.T) {
	for what, c := range map[string]struct {
		fence   string
		verdict OrderStatus
		err     error
		want    Status
	}{
		"exists":          {fenceNone, OrderExists, nil, 'C'},
		"exists, fenced":  {fenceDeadline, OrderExists, nil, 'C'},
		"none, no fence":  {fenceNone, OrderNotFound, nil, 'H'},
		"none, deadline":  {fenceDeadline, OrderNotFound, nil, 'X'},
		"none, cancel":    {fenceCancel, OrderNotFound, nil, 'X'},
		"none, hold":      {fenceHold, OrderNotFound, nil, 'X'},
		"unknown":         {fenceDeadline, OrderUnknown, nil, 'H'},
		"cannot be asked": {fenceDeadline, OrderNotFound, errors.New("gone"), 'H'},
	} {
		t.Run(what, func(t *testing.T) {
			at(t, func(t *testing.T) {
				o := testOptions()
				o.Hold, o.OnNotFound = time.Minute, c.fence
				s := abandoned(t, o)
				shop := &oracle{verdict: c.verdict, err: c.err}
				d := opened(t, o, s, shop.Ask)
				d.Track(testSKU)
				time.Sleep(time.Minute - time.Second)
				if shop.asked.Load() != 0 {
					t.Error("asked before the deadline")
				}
				time.Sleep(time.Minute)
				if got := s.record(testSKU, "k").Status; got != c.want {
					t.Errorf("%c, want %c", got, c.want)
				}
				if n := unknowns(d); n != int64(s.stock(testSKU).Held) {
					t.Errorf("%d unknown, stock %+v", n, s.stock(testSKU))
				}
			})
		})
	}
}

func TestResolve_UnknownOrderIsAskedForAtOnceButReleasedOnlyBehindItsDeadline(t *testing.T) {
	for fence, early := range map[string]Status{
		fenceDeadline: 'H', fenceHold: 'H', fenceNone: 'H', fenceCancel: 'X',
	} {
		t.Run(fence, func(t *testing.T) {
			at(t, func(t *testing.T) {
				o := testOptions()
				o.Hold, o.OnNotFound = 10*time.Minute, fence
				s := fakeStoreOf(testSKU, 1)
				shop := &oracle{verdict: OrderNotFound}
				d := opened(t, o, s, shop.Ask)
				wants(t, "order", d.buy("7", "k"), Held)
				d.Unknown(testSKU, "k")
				time.Sleep(9 * time.Minute)
				if n := shop.asked.Load(); n == 0 || n > 12 {
					t.Errorf("asked %d times", n)
				}
				if got := s.record(testSKU, "k").Status; got != early {
					t.Errorf("%c before its deadline, want %c", got, early)
				}
				time.Sleep(10 * time.Minute)
				want := StatusReleased
				if fence == fenceNone {
					want = 'H'
				}
				if got := s.record(testSKU, "k").Status; got != want {
					t.Errorf("%c in the end, want %c", got, want)
				}
			})
		})
	}
}

func TestResolve_UnknownOrderThatExistsIsConfirmedEarly(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 1)
		d := opened(t, testOptions(), s, (&oracle{verdict: OrderExists}).Ask)
		wants(t, "order", d.buy("7", "k"), Held)
		d.Unknown(testSKU, "k")
		time.Sleep(2 * time.Second)
		confirmed := valueOf(d.resolutions.WithLabelValues(string(foundOrder)))
		if s.stock(testSKU).Sold != 1 || unknowns(d) != 0 || confirmed != 1 {
			t.Errorf("stock %+v, %d unknown", s.stock(testSKU), unknowns(d))
		}
	})
}

func TestResolve_HoldIsAskedForByOneInstance(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		o.Hold = time.Second
		s := abandoned(t, o)
		var shops [5]oracle
		var reservers []*Reserver
		for i := range shops {
			reservers = append(reservers, opened(t, o, s, shops[i].Ask))
			reservers[i].Track(testSKU)
		}
		time.Sleep(15*time.Second + 500*time.Millisecond) // between two turns
		asking := 0
		for i := range shops {
			if n := shops[i].asked.Load(); n > 0 {
				asking++
				if n > 5 {
					t.Errorf("asked %d times in 15 s", n)
				}
			}
		}
		if asking != 1 {
			t.Errorf("%d instances asked", asking)
		}
		for range 5 { // the lease ends, and another one or the same has it
			time.Sleep(time.Minute)
			unknown := int64(0)
			for _, d := range reservers {
				unknown += unknowns(d)
			}
			if unknown != 1 {
				t.Errorf("%d instances count it", unknown)
			}
		}
	})
}

func TestResolve_HoldOfAnInstanceThatDiedIsTakenOver(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		o.Hold = time.Second
		s := abandoned(t, o)
		if due, err := s.Sweep(t.Context(), testSKU, time.Now().Add(time.Hour).UnixMilli(),
			time.Now().Add(leaseFor).UnixMilli(), 9); err != nil ||
			len(due) != 1 {
			t.Fatal(due, err) // by an instance that dies now
		}
		d := opened(t, o, s, (&oracle{verdict: OrderExists}).Ask)
		d.Track(testSKU)
		time.Sleep(15 * time.Second)
		if s.stock(testSKU).Sold != 0 {
			t.Error("not leased")
		}
		time.Sleep(10 * time.Second)
		if s.stock(testSKU).Sold != 1 {
			t.Errorf("stock %+v", s.stock(testSKU))
		}
	})
}

func TestResolver_WithoutASourceOverdueReservationsStayAndAreCounted(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		o.Hold, o.OnNotFound = time.Second, fenceDeadline
		s := abandoned(t, o)
		d := opened(t, o, s, nil)
		d.Track(testSKU)
		for range 10 {
			time.Sleep(time.Minute)
			synctest.Wait()
			if s.stock(testSKU).Held != 1 || unknowns(d) != 1 {
				t.Fatalf("stock %+v, %d unknown", s.stock(testSKU), unknowns(d))
			}
		}
		d.Settle(testSKU, "k", Confirm) // by hand
		synctest.Wait()
		if s.stock(testSKU).Sold != 1 || unknowns(d) != 0 {
			t.Errorf("stock %+v, %d unknown", s.stock(testSKU), unknowns(d))
		}
	})
}

// The clock ran an hour ahead while an outcome became unknown, and is set right: the upstream is asked as soon as
// usual.
func TestResolve_ClockThatRanAheadPutsNoQuestionOff(t *testing.T) {
	at(t, func(t *testing.T) {
		var ahead atomic.Int64
		o := testOptions()
		o.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		s := fakeStoreOf(testSKU, 1)
		d := opened(t, o, s, (&oracle{verdict: OrderExists}).Ask)
		wants(t, "order", d.buy("7", "k"), Held)
		ahead.Store(int64(time.Hour))
		d.Unknown(testSKU, "k")
		ahead.Store(0)
		time.Sleep(2 * time.Second) // of virtual time, in which the first questions are due
		if got := s.record(testSKU, "k").Status; got != 'C' {
			t.Errorf("%c, want C", got)
		}
	})
}
