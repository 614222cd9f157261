package ledger

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"
)

// opening returns a desk that knows of 10 units, on sale after 10 s and for 20 s.
func opening(t *testing.T, o DeskOptions) (*Desk, *shelf, int64) {
	t.Helper()
	s := shelfOf(sku, 10)
	opens := time.Now().Add(10 * time.Second).UnixMilli()
	must[Stock](t)(s.SetHours(t.Context(), sku, opens, opens+20_000))
	d := opened(t, o, s, nil)
	if out := d.buy("early", ""); out.Code != NotOnSale || out.State != Waiting || out.Opens != opens {
		t.Fatal(out)
	}
	d.winnersRead(t, sku)
	return d, s, opens
}

func TestLatchOpensByItsHoursAndAsksNobody(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		o.SoldOutMemory = time.Hour
		d, s, opens := opening(t, o)
		time.Sleep(10*time.Second - 1)
		for i, key := range []string{"", "key"} {
			if out := d.buy(fmt.Sprint("almost", i), key); out.Code != NotOnSale || out.State != Waiting || out.Opens != opens {
				t.Fatal(out)
			}
		}
		time.Sleep(time.Nanosecond)
		before := s.asked()
		wants(t, "at the very moment", d.buy("first", ""), Held)
		want(t, "calls", s.asked()-before, 1)
	})
}

func TestCrowdThatWaitsForTheOpeningCostsNoMoreThanAnyOther(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s, _ := opening(t, deskOptions())
		for range 100 { // of them, one a second looks
			time.Sleep(99 * time.Millisecond)
			storm(50, 50, func(i int) { wants(t, "early", d.buy(fmt.Sprint(i), ""), NotOnSale) })
		}
		if n := s.asked(); n > 11 {
			t.Errorf("%d calls before", n)
		}
		time.Sleep(time.Second)
		before := s.asked()
		var held atomic.Int64
		storm(5_000, 500, func(i int) {
			switch out := d.buy(fmt.Sprint("u", i), ""); out.Code {
			case Held:
				held.Add(1)
			case SoldOut:
			default:
				t.Errorf("heard %v", out)
			}
		})
		want(t, "winners", held.Load(), 10)
		if n := s.asked() - before; n > 20 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestSaleThatIsOverIsSaidFromMemoryButNotToItsWinners(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		o.SoldOutMemory = time.Hour
		d, s, _ := opening(t, o)
		other := opened(t, o, s, nil)
		time.Sleep(10 * time.Second)
		wants(t, "in time", d.buy("ann", ""), Held)
		wants(t, "in time elsewhere", other.buy("bob", ""), Held)
		time.Sleep(20 * time.Second)
		wants(t, "a winner of the other instance", d.buy("bob", ""), ReplayHeld)
		before := s.asked()
		for range 100 {
			if out := d.buy("late", ""); out.Code != NotOnSale || out.State != Over || out.Opens != 0 {
				t.Fatal(out)
			}
		}
		want(t, "calls", s.asked(), before)
		wants(t, "a winner's retry", d.buy("ann", ""), ReplayHeld)
	})
}

func TestPauseIsToldBeforeTheHours(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s, _ := opening(t, deskOptions())
		d.Note(sku, must[Stock](t)(s.SetState(t.Context(), sku, Paused)).Hint)
		if out := d.buy("early", ""); out.Code != NotOnSale || out.State != Paused || out.Opens != 0 {
			t.Fatal(out)
		}
	})
}

// The wall clock counts milliseconds, the desk's any nanoseconds.
func TestScheduleIsExactToTheNanosecond(t *testing.T) {
	wall := time.Unix(1_800_000_000, 123_456_789)
	now := wall.UnixMilli()
	for _, c := range []struct{ opens, closes, from, until int64 }{
		{0, 0, math.MinInt64, forever},
		{now + 1, now + 2, 77 + 1e6 - 456_789, 77 + 2e6 - 456_789},
		{now, 0, 77 - 456_789, forever},
		{1, 2, 77 - 1e18 - 456_789, 77 - 1e18 - 456_789},
		{maxNumber - 1, maxNumber, 77 + 1e18 - 456_789, 77 + 1e18 - 456_789},
	} {
		v := view{Hint: Hint{Opens: c.opens, Closes: c.closes}}
		v.schedule(wall, 77)
		want(t, fmt.Sprint("from ", c.opens), v.from, c.from)
		want(t, fmt.Sprint("until ", c.closes), v.until, c.until)
	}
}

func TestRefusalOfAStoreThatOpenedSinceIsStillOne(t *testing.T) {
	h := Hint{State: On, Opens: 10, Closes: 20}
	want(t, "before", h.refusal(9), Outcome{Code: NotOnSale, State: Waiting, Opens: 10})
	want(t, "just opened", h.refusal(10), Outcome{Code: NotOnSale, State: Waiting, Opens: 10})
	want(t, "over", h.refusal(20), Outcome{Code: NotOnSale, State: Over})
	h.State = Frozen
	want(t, "frozen", h.refusal(9), Outcome{Code: NotOnSale, State: Frozen})
}
