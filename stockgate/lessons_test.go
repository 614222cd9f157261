package stockgate

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/proxy"
)

func lessons() *SoldOutFeedback {
	return NewSoldOutFeedback(time.Second, slog.New(slog.NewTextHandler(io.Discard, nil)))
}

func TestLessons_LessonLastsForItsTimeAndForItsSKU(t *testing.T) {
	l := lessons()
	l.RecordSoldOut(1000, []byte("1001"), false)
	second := int64(time.Second)
	for _, tt := range []struct {
		now  int64
		sku  string
		want bool
	}{{1000, "1001", true}, {999 + second, "1001", true}, {1000 + second, "1001", false}, {1000, "1002", false}} {
		if got := l.SoldOut(tt.now, []byte(tt.sku)); got != tt.want {
			t.Errorf("%s at %d: %v", tt.sku, tt.now, got)
		}
	}
	l.RecordSoldOut(2*second, []byte("1001"), false)
	l.RecordSoldOut(second, []byte("1001"), false) // a response that came late
	if !l.SoldOut(2*second, []byte("1001")) {
		t.Error("it cannot be learnt again")
	}
}

func TestLessons_LessonOfAnOrderWithUnitsIsCountedAndClosesNothingHere(t *testing.T) {
	l := lessons()
	l.RecordSoldOut(1000, []byte("1001"), true)
	if l.SoldOut(1000, []byte("1001")) || l.forced.Load() != 1 || !l.warned.Load() {
		t.Errorf("forced %d, warned %v", l.forced.Load(), l.warned.Load())
	}
}

func TestLessons_InventedSKUsDoNotKeepALessonOut(t *testing.T) {
	l := lessons()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 100_000 / 4 {
				l.RecordSoldOut(int64(j)*int64(time.Millisecond), fmt.Append(nil, "sku-", i, "-", j), false)
			}
		})
	}
	all.Wait()
	late := int64(time.Hour)
	l.RecordSoldOut(late, []byte("real"), false)
	if !l.SoldOut(late, []byte("real")) {
		t.Error("what is new has no room")
	}
}

func TestLessons_AskingLessonsCostsNothing(t *testing.T) {
	l := lessons()
	l.RecordSoldOut(1, []byte("1001"), false)
	sku, other := []byte("1001"), []byte("other")
	if n := testing.AllocsPerRun(1000, func() { l.SoldOut(2, sku); l.SoldOut(2, other) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLessons_WhatIsShownIsWhatBuyersFind(t *testing.T) {
	m := NewMemory()
	for sku, n := range map[string]int64{"some": 7, "none": 0} {
		testkit.Check(t, m.Set(t.Context(), sku, n))
	}
	g := open(t, options(), m)
	for sku, want := range map[string]struct {
		phase proxy.StockPhase
		free  int64
	}{"some": {proxy.PhaseInStock, 7}, "none": {proxy.PhaseSoldOut, 0}, "invented": {proxy.PhaseUnknown, -1}} {
		if phase, free := g.StockStatus(g.poller.clock(), []byte(sku)); phase != want.phase || free != want.free {
			t.Errorf("%s: %v %d", sku, phase, free)
		}
	}
}
