package ledger

// Time in this file is virtual (testing/synctest).

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// opening returns a reserver that knows of 10 units, on sale after 10 s and for 20 s.
func opening(t *testing.T, o Options) (*Reserver, *fakeStore, int64) {
	t.Helper()
	s := fakeStoreOf(testSKU, 10)
	opens := time.Now().Add(10 * time.Second).UnixMilli()
	testkit.Must[Stock](t)(s.SetSchedule(t.Context(), testSKU, opens, opens+20_000))
	d := opened(t, o, s, nil)
	if out := d.buy("early", ""); out.Code != NotOnSale || out.State != Waiting || out.Opens != opens {
		t.Fatal(out)
	}
	return d, s, opens
}

func TestSoldOutCache_OpensByItsHoursWithoutACall(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		o.SoldOutMemory = time.Hour
		d, s, opens := opening(t, o)
		time.Sleep(10*time.Second - 1)
		for i, key := range []string{"", "key"} {
			if out := d.buy(fmt.Sprint("almost", i), key); out.Code != NotOnSale || out.State != Waiting ||
				out.Opens != opens {
				t.Fatal(out)
			}
		}
		time.Sleep(time.Nanosecond)
		before := s.asked()
		wants(t, "at the very moment", d.buy("first", ""), Held)
		testkit.Want(t, "calls", s.asked()-before, 1)
	})
}

func TestHours_CrowdThatWaitsForTheOpeningCostsNoMoreThanAnyOther(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s, _ := opening(t, testOptions())
		// A call takes time, which passes in the bubble only when all who come are waiting: so batches are the same on each
		// machine.
		s.set(func(_ string, after bool) error {
			if !after {
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		for range 100 { // of them, one a second looks
			time.Sleep(99 * time.Millisecond)
			testkit.Storm(50, 50, func(i int) { wants(t, "early", d.buy(fmt.Sprint(i), ""), NotOnSale) })
		}
		if n := s.asked(); n > 11 {
			t.Errorf("%d calls before", n)
		}
		time.Sleep(time.Second)
		before := s.asked()
		var held atomic.Int64
		testkit.Storm(5_000, 500, func(i int) {
			switch out := d.buy(fmt.Sprint("u", i), ""); out.Code {
			case Held:
				held.Add(1)
			case SoldOut, Undecided:
			default:
				t.Errorf("heard %v", out)
			}
		})
		testkit.Want(t, "winners", held.Load(), 10)
		if n := s.asked() - before; n > 20 { // 2 to 4 of them
			t.Errorf("%d calls", n)
		}
	})
}

func TestHours_SaleThatIsOverIsSaidFromMemoryButNotToItsWinners(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
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
			time.Sleep(time.Duration(lookupInterval))
			for _, user := range []string{"late", ""} {
				if out := d.buy(user, ""); out.Code != NotOnSale || out.State != Over || out.Opens != 0 {
					t.Fatal(out)
				}
			}
		}
		testkit.Want(t, "look-ups", s.asked()-before, 100)
		wants(t, "a winner's retry", d.buy("ann", ""), ReplayHeld)
	})
}

func TestHours_PauseIsToldBeforeTheHours(t *testing.T) {
	at(t, func(t *testing.T) {
		d, s, _ := opening(t, testOptions())
		d.Learn(testSKU, testkit.Must[Stock](t)(s.SetState(t.Context(), testSKU, Paused)).StockVersion)
		if out := d.buy("early", ""); out.Code != NotOnSale || out.State != Paused || out.Opens != 0 {
			t.Fatal(out)
		}
	})
}

// The wall clock counts milliseconds, the reserver's any nanoseconds.
func TestHours_ScheduleIsExactToTheNanosecond(t *testing.T) {
	wall := time.Unix(1_800_000_000, 123_456_789)
	now := wall.UnixMilli()
	s := cachedStock{wall: wall.UnixNano() - 77}
	s.State, s.Opens, s.Closes = On, now+1, now+2
	const opens, closes = 77 + 1e6 - 456_789, 77 + 2e6 - 456_789
	for at, want := range map[int64]State{0: Waiting, opens - 1: Waiting, opens: On,
		closes - 1: On, closes: Over, math.MaxInt64 / 8: Over} {
		testkit.Want(t, fmt.Sprint("at ", at), s.stateAt(at), want)
	}
}

func TestReserver_RejectionOfAStoreThatOpenedSinceIsStillOne(t *testing.T) {
	h := StockVersion{State: On, Opens: 10, Closes: 20}
	testkit.Want(t, "before", notOnSale(h, 9), Outcome{Code: NotOnSale, State: Waiting, Opens: 10})
	testkit.Want(t, "just opened", notOnSale(h, 10),
		Outcome{Code: NotOnSale, State: Waiting, Opens: 10})
	testkit.Want(t, "over", notOnSale(h, 20), Outcome{Code: NotOnSale, State: Over})
	h.State = Frozen
	testkit.Want(t, "frozen", notOnSale(h, 9), Outcome{Code: NotOnSale, State: Frozen})
}
