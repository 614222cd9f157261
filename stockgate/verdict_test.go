package stockgate

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/layout"
)

// learnt returns a stepped gate, and an entry for sku of which a reading was taken at the time at.
func learnt(t *testing.T, o Options, at int64, sku []byte, r layout.Reading) (*Gate, *entry) {
	t.Helper()
	g := stepped(t, o, NewMemory())
	e := addEntry(g.table, at, sku)
	g.poller.publishReading(at, e, r)
	return g, e
}

func TestVerdict_LastsForSoldOutMemoryAndNotLonger(t *testing.T) {
	sku := []byte("1001")
	const at, memory = int64(5e9), int64(time.Second)
	for what, c := range map[string]struct {
		reading layout.Reading
		want    reject.Reason
	}{
		"sold out":       {reading(0), reject.SoldOut},
		"below zero":     {reading(-7), reject.SoldOut},
		"not on sale":    {layout.Reading{Left: 5, Free: 5, Exists: true}, reject.Paused},
		"both":           {layout.Reading{Exists: true}, reject.SoldOut},
		"no such key":    {layout.Reading{OnSale: true}, reject.UnknownSKU},
		"on sale":        {reading(1), reject.Admitted},
		"not a number":   {layout.Reading{Fault: errors.New("abc")}, reject.Admitted}, // Enter decides
		"a caller ahead": {reading(0), reject.SoldOut},
	} {
		g, _ := learnt(t, options(), at, sku, c.reading)
		for _, now := range []int64{at - 1000, at, at + 1, at + memory} {
			if got := g.Closed(now, sku); got != c.want {
				t.Errorf("%s, %v later: %v, want %v", what, time.Duration(now-at), got, c.want)
			}
		}
		if got := g.Closed(at+memory+1, sku); got != reject.Admitted {
			t.Errorf("%s, after sold_out_ttl: %v", what, got)
		}
	}
}

func TestVerdict_OpenSampleServesForTwentyRefreshesWhileTheSourceIsAway(t *testing.T) {
	sku := []byte("1001")
	const at, lasts = int64(5e9), int64(200 * time.Millisecond)
	g, _ := learnt(t, options(), at, sku, reading(3))
	g.poller.health.record(at, errors.New("gone"))
	if got := g.Enter(at+lasts, sku, nil); got != reject.Admitted {
		t.Fatalf("enter on a sample 200 ms old: %v", got)
	}
	if got := g.Enter(at+lasts+1, sku, nil); got != reject.StockError {
		t.Fatalf("enter on an older one: %v", got)
	}
}

func TestVerdict_SoldOutOutlivesTheSourceForSoldOutMemory(t *testing.T) {
	sku := []byte("1001")
	const at = int64(5e9)
	for _, allow := range []bool{false, true} {
		o := options()
		o.AllowOnError = allow
		g, _ := learnt(t, o, at, sku, reading(0))
		g.poller.health.record(at, errors.New("gone"))
		if got := g.Enter(at+int64(time.Second), sku, nil); got != reject.SoldOut {
			t.Fatalf("allow %v: enter within sold_out_ttl: %v", allow, got)
		}
		want := reject.StockError
		if allow {
			want = reject.Admitted
		}
		if got := g.Enter(at+int64(time.Second)+1, sku, nil); got != want {
			t.Fatalf("allow %v: enter after it: %v, want %v", allow, got, want)
		}
	}
}

func TestVerdict_UnitsThatAreTakenAndGivenBackDoNotCloseASKU(t *testing.T) {
	sku := []byte("1001")
	g, e := learnt(t, options(), 0, sku, reading(2))
	now := int64(time.Millisecond)
	g.poller.publishReading(now, e, reading(-3)) // a request asked for five
	if got := g.Closed(now, sku); got != reject.Admitted {
		t.Fatalf("closed by one negative reading: %v", got)
	}
	g.poller.publishReading(now, e, reading(2))
	g.poller.publishReading(now, e, reading(-3))
	if got := g.Closed(now, sku); got != reject.Admitted {
		t.Fatalf("closed by negative readings that were undone: %v", got)
	}
	g.poller.publishReading(now, e, reading(-3))
	if got := g.Closed(now, sku); got != reject.SoldOut {
		t.Fatalf("two negative readings in a row: %v", got)
	}
}

func TestVerdict_ZeroClosesAtOnce(t *testing.T) {
	sku := []byte("1001")
	g, e := learnt(t, options(), 0, sku, reading(2))
	g.poller.publishReading(1, e, reading(0))
	if got := g.Closed(1, sku); got != reject.SoldOut {
		t.Fatalf("closed: %v", got)
	}
}

func TestVerdict_WhatIsSoldOutIsReadFourTimesInSoldOutMemory(t *testing.T) {
	g, e := learnt(t, options(), 0, []byte("1001"), reading(0))
	s := g.poller
	for _, c := range []struct {
		reading layout.Reading
		after   time.Duration
		want    bool
	}{
		{reading(0), 240 * time.Millisecond, false},
		{reading(0), 250 * time.Millisecond, true},
		{reading(1), 4 * time.Millisecond, false},
		{reading(1), 10 * time.Millisecond, true},
		{layout.Reading{Fault: errors.New("abc")}, 240 * time.Millisecond, false},
		{layout.Reading{Fault: errors.New("abc")}, 250 * time.Millisecond, true},
	} {
		s.publishReading(0, e, c.reading)
		if got := s.due(int64(c.after), e); got != c.want {
			t.Errorf("%+v, %v later: due %v, want %v", c.reading, c.after, got, c.want)
		}
	}
}

func TestVerdict_FaultyStockIsDecidedByOnErrorAndCounted(t *testing.T) {
	sku := []byte("1001")
	for _, allow := range []bool{false, true} {
		o := options()
		o.AllowOnError = allow
		g, _ := learnt(t, o, 0, sku, layout.Reading{Fault: errors.New("abc")})
		want, counter := reject.StockError, &g.fallbacks.rejected
		if allow {
			want, counter = reject.Admitted, &g.fallbacks.allowed
		}
		for i := range uint64(3) {
			if got := g.Enter(1, sku, nil); got != want || counter.Load() != i+1 {
				t.Fatalf("allow %v: enter %v, counted %d; want %v, %d", allow, got, counter.Load(), want, i+1)
			}
		}
	}
}

func TestVerdict_CrowdWritesTheTimeItAskedTenTimesASecond(t *testing.T) {
	e := &entry{}
	writes := 0
	for now := range int64(10_000) { // a second, in steps of 100 µs
		before := e.asked.Load()
		e.markAsked(now*100_000, 0)
		if e.asked.Load() != before {
			writes++
		}
	}
	if writes > 10 || writes < 9 {
		t.Fatalf("%d writes in a second", writes)
	}
}

func TestVerdict_AndTimeAreReadTogether(t *testing.T) {
	e := &entry{}
	for v := range numVerdicts {
		for _, at := range []int64{0, 1, -1, 1 << 59, -1 << 59} {
			e.publish(v, 0, at)
			if gotV, gotAt := e.reading(); gotV != v || gotAt != at {
				t.Fatalf("published %d at %d, got %d at %d", v, at, gotV, gotAt)
			}
		}
	}
}

func TestVerdict_ProductOfLargeNumbersIsHeld(t *testing.T) {
	for _, c := range [][3]int64{{2, 3, 6}, {1, 1<<63 - 1, 1<<63 - 1}, {2, 1 << 62, 1<<63 - 1}, {5, 0, 0}} {
		if got := times(c[0], c[1]); got != c[2] {
			t.Errorf("%d × %d = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestVerdict_StockThatVanishesIsNamedOnce(t *testing.T) {
	o, said := options(), &testkit.Log{}
	o.Log = slog.New(slog.NewTextHandler(said, nil))
	missing := layout.Reading{OnSale: true}
	g, e := learnt(t, o, 5e9, []byte("1001"), reading(7))
	never := addEntry(g.table, 5e9, []byte("never"))
	for range 3 {
		g.poller.publishReading(6e9, e, missing)
		g.poller.publishReading(6e9, never, missing)
	}
	text := said.String()
	if said.Count("the stock key of a SKU is gone") != 1 || !strings.Contains(text, "sku=1001 had=7") {
		t.Errorf("the log:\n%s", text)
	}
}
