package load

import (
	"slices"
	"testing"
	"time"
)

func TestCrowd_EveryArrivalIsOnTheCalendar(t *testing.T) {
	arrivals := make([]time.Duration, 10_000)
	for i := range arrivals {
		arrivals[i] = time.Duration(i) * 61 * time.Millisecond
	}
	c, err := New(Plan{Order: Order{Match: "/"}, Arrivals: arrivals, GiveUpAfter: time.Millisecond, Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	come := 0
	for i := range c.calendar.pages {
		come += len(c.calendar.takePage(i))
	}
	if come != len(arrivals) {
		t.Errorf("%d of %d come", come, len(arrivals))
	}
}

func TestCrowd_TimesOfTwoStopwatchesTogether(t *testing.T) {
	a, b := NewStopwatch(), NewStopwatch()
	for range 99 {
		a.Observe(time.Millisecond)
	}
	b.Observe(time.Second)
	got := Together(a, b).Times()
	if got.Count != 100 || got.P50 != 1 || got.Max < 999 || got.Max > 1001 || a.Times().Count != 99 {
		t.Errorf("%+v", got)
	}
}

func TestCrowd_PeaksAndSumsOfASeries(t *testing.T) {
	s := newSeries(time.Second)
	for at, n := range map[time.Duration]int{0: 1, 15 * time.Millisecond: 4, 25 * time.Millisecond: 3,
		500 * time.Millisecond: 5, time.Hour: 9} {
		for range n {
			s.Count(at)
		}
	}
	if s.Peak(1) != 5 || s.Peak(2) != 7 || s.Peak(100) != 13 {
		t.Errorf("peaks %d, %d, %d", s.Peak(1), s.Peak(2), s.Peak(100))
	}
	if got := s.Sums(2, 50*time.Millisecond); !slices.Equal(got, []int64{5, 3, 0}) {
		t.Errorf("sums %v", got)
	}
}

// A shopper who is called and comes too late joins again. If the room is over then, the shopper was called, and is
// counted once.
func TestCrowd_ShopperWhoJoinsAgainIsOnePerson(t *testing.T) {
	order := Order{Match: "POST /order/{sku}", ID: "1001", SKU: "$path_sku", User: "$cookie_uid", Names: "a"}
	c, err := New(Plan{Arrivals: make([]time.Duration, 2), GiveUpAfter: time.Hour, Connections: 1, Room: "r", Order: order})
	if err != nil {
		t.Fatal(err)
	}
	c.start = time.Now()
	for _, a := range []answer{
		{state: "waiting", ticket: "1", clock: 1000},
		{state: "missed", claimFrom: 2000, clock: 9000},
		{state: "waiting", ticket: "2", clock: 9500},
		{phase: "over", clock: 9900},
	} {
		stored, _ := c.seats.Load(int32(0))
		s, _ := stored.(seat)
		c.hear(0, s, a)
	}
	c.hear(1, seat{}, answer{state: "waiting", ticket: "3", clock: 1000})
	c.hear(1, seat{ticket: "3"}, answer{phase: "over", clock: 9900})
	want := RoomOutcome{Called: true, Home: SoldOut, Joined: 1000, Over: 9900}
	if got := c.RoomOutcome(0); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if n := c.Counts(); n.Room.Joined != 2 || n.Room.Ended != 1 || n.Home[SoldOut] != 2 {
		t.Errorf("%d joined, %d were told of the end, %d went home with nothing; want 2, 1, 2", n.Room.Joined, n.Room.Ended,
			n.Home[SoldOut])
	}
}
