package demo

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// sound is a report in which everything adds up.
func sound() Report {
	return Report{
		Gated: true, Took: 3700 * time.Millisecond,
		Shoppers: 2000, Bought: 100, SoldOut: 1890, HadOne: 1, TurnedAway: 2, GaveUp: 7,
		Asked: 6256, Admitted: 111, Refused: []Refused{{"concurrency", 4256}, {"sold_out", 1879}}, Unknown: 1, Broken: 2, Unanswered: 7,
		Refusal: Percentiles{6135, 120 * time.Microsecond, 47400 * time.Microsecond, time.Second},
		Order:   Percentiles{100, 200 * time.Millisecond, 1671 * time.Millisecond, 2 * time.Second},
		Shop:    Books{Units: 101, Orders: 101, Received: 112, HighestInFlight: 12, Took: Percentiles{112, time.Millisecond, time.Second, time.Second}},
	}
}

func TestReportThatDoesNotAddUpSaysSo(t *testing.T) {
	if err := sound().Err(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Report){
		"oversold 1: 101 orders for 100 units": func(r *Report) { r.Shop.Units, r.Shop.Oversold = 100, 1 },
		"sold twice: 1":                        func(r *Report) { r.Shop.Twice = 1 },
		"lost orders: 101":                     func(r *Report) { r.Shop.Orders = 100 },
		"count presses: asked 6257":            func(r *Report) { r.Asked++ },
		"count presses: asked 6256":            func(r *Report) { r.Refused = r.Refused[:1] },
		"count shoppers: 1 of 2000":            func(r *Report) { r.GaveUp-- },
	} {
		r := sound()
		spoil(&r)
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
		if !strings.Contains(r.String(), "BROKEN: ") {
			t.Errorf("%q is not in the text", want)
		}
	}
}

func TestReportNamesEveryFigureWithin80Columns(t *testing.T) {
	r := sound()
	r.Refused = nil
	for reason := range meanings {
		r.Refused = append(r.Refused, Refused{reason, 1_000_000})
	}
	r.Asked = r.Admitted + r.RefusedInAll() + r.Failed()
	text := r.String()
	for _, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"bought", "gave up", "admitted", "stock_error", "unknown", "oversold", "0.12 ms", "47.4 ms", "1,671 ms", "101 of 101 sold, 0 oversold, nobody got two"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestComparisonShowsWhatOnlyOneOfThemSaw(t *testing.T) {
	bare := sound()
	bare.Gated, bare.Refused, bare.HadOne = false, nil, 0
	gated := sound()
	gated.Unknown = 0
	var b strings.Builder
	if err := Compare(&b, gated, bare); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"with the gate", "without a gate", "concurrency", "had one", "unknown"} {
		if strings.Count(b.String(), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, b.String())
		}
	}
}

func TestNumbersAreReadable(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
