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
	c, err := New(Plan{Arrivals: arrivals, GiveUpAfter: time.Millisecond, Connections: 1})
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
