package sale

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"sluice/proxy/reject"
	"sluice/stockgate/redisconn"
)

func TestPlan_SaleIsOnFromItsStartToItsEnd(t *testing.T) {
	for _, tt := range []struct {
		at     time.Duration // after the start
		reason reject.Reason
		wait   time.Duration
	}{
		{-time.Hour, reject.NotStarted, time.Hour},
		{-1, reject.NotStarted, 1},
		{0, reject.Admitted, 0},
		{2*time.Hour - 1, reject.Admitted, 0},
		{2 * time.Hour, reject.Ended, 0},
		{1000 * time.Hour, reject.Ended, 0},
	} {
		b, _ := still(t, begins.Add(tt.at), eleven())
		for _, reserved := range []bool{false, true} {
			if reason, wait := b.Closed(0, []byte("1001"), reserved); reason != tt.reason || wait != tt.wait {
				t.Errorf("%v after the start: %v %v, want %v %v", tt.at, reason, wait, tt.reason, tt.wait)
			}
		}
		if reason, _ := b.Closed(0, []byte("1003"), false); reason != reject.Admitted {
			t.Errorf("a SKU in no sale hears %v", reason)
		}
	}
}

func TestPlan_EarlyRequestsPassWhereTheyMayButNeverReserve(t *testing.T) {
	s := eleven()
	s.Pass = true
	b, _ := still(t, begins.Add(-time.Second), s)
	if reason, _ := b.Closed(0, []byte("1001"), false); reason != reject.Admitted {
		t.Errorf("early: %v", reason)
	}
	if reason, wait := b.Closed(0, []byte("1001"), true); reason != reject.NotStarted || wait != time.Second {
		t.Errorf("early order: %v %v", reason, wait)
	}
	if err := b.Set(t.Context(), s.Name, Paused); err != nil {
		t.Fatal(err)
	}
	if reason, _ := b.Closed(0, []byte("1001"), false); reason != reject.Paused {
		t.Errorf("early, while it is paused: %v", reason)
	}
}

func TestPlan_OperatorsWordCountsUntilTheNextOne(t *testing.T) {
	b, _ := still(t, begins, eleven())
	for _, tt := range []struct {
		to   State
		want reject.Reason
	}{{Paused, reject.Paused}, {On, reject.Admitted}, {Ended, reject.Ended}} {
		if err := b.Set(t.Context(), "double-11", tt.to); err != nil {
			t.Fatal(err)
		}
		b.beat(t.Context())
		if reason, _ := b.Closed(0, []byte("1002"), false); reason != tt.want {
			t.Errorf("%v: %v, want %v", tt.to, reason, tt.want)
		}
	}
	if err := b.Set(t.Context(), "double-11", On); !errors.Is(err, ErrEnded) {
		t.Errorf("a sale that has ended was opened: %v", err)
	}
	if err := b.Set(t.Context(), "double-12", On); err == nil {
		t.Error("a sale that is not there was opened")
	}
}

func TestPlan_NextSaleOfASKUComesAfterTheFirst(t *testing.T) {
	second := Sale{Name: "second", SKUs: []string{"1001"}, Starts: begins.Add(3 * time.Hour),
		Ends: begins.Add(4 * time.Hour)}
	for after, want := range map[time.Duration]reject.Reason{
		-time.Hour: reject.NotStarted, time.Hour: reject.Admitted, 150 * time.Minute: reject.NotStarted,
		210 * time.Minute: reject.Admitted, 5 * time.Hour: reject.Ended,
	} {
		b, _ := still(t, begins.Add(after), second, eleven())
		if reason, _ := b.Closed(0, []byte("1001"), true); reason != want {
			t.Errorf("%v after the start: %v, want %v", after, reason, want)
		}
	}
}

func TestPlan_ReloadKeepsWhatOperatorsSaidOfASaleAndNotOfAnotherOfItsName(t *testing.T) {
	b, _ := still(t, begins, eleven())
	if err := b.Set(t.Context(), "double-11", Ended); err != nil {
		t.Fatal(err)
	}
	b.Use([]Sale{eleven()}, false)
	if reason, _ := b.Closed(0, []byte("1001"), false); reason != reject.Ended {
		t.Errorf("read again: %v", reason)
	}
	corrected, next := eleven(), eleven()
	corrected.Starts = corrected.Starts.Add(-time.Minute)
	next.Starts = next.Starts.Add(time.Minute)
	for _, tt := range []struct {
		sale Sale
		want reject.Reason
	}{{corrected, reject.Ended}, {next, reject.NotStarted}} {
		b.Use([]Sale{tt.sale}, false)
		if reason, _ := b.Closed(0, []byte("1001"), true); reason != tt.want {
			t.Errorf("start at %v: %v, want %v", tt.sale.Starts, reason, tt.want)
		}
	}
}

func TestPlan_ClosedCostsNothing(t *testing.T) {
	b, _ := still(t, begins.Add(-time.Second), eleven())
	sku, other := []byte("1001"), []byte("elsewhere")
	if n := testing.AllocsPerRun(1000, func() {
		b.Closed(0, sku, false)
		b.Closed(0, other, true)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkClosed(b *testing.B) {
	schedule := &Schedule{o: Options{Now: func() int64 { return 0 }, Wall: func() time.Time { return begins },
		Log: slog.New(slog.DiscardHandler)}, beats: &redisconn.Beats{}}
	schedule.Use([]Sale{eleven()}, false)
	sku := []byte("1001")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			schedule.Closed(0, sku, false)
		}
	})
}

func TestPlan_SaleThatIsEndedMakesWayForTheNextOne(t *testing.T) {
	second := Sale{Name: "second", SKUs: []string{"1001"}, Starts: begins.Add(3 * time.Hour),
		Ends: begins.Add(4 * time.Hour)}
	b, _ := still(t, begins.Add(time.Hour), eleven(), second)
	if err := b.Set(t.Context(), "double-11", Ended); err != nil {
		t.Fatal(err)
	}
	for sku, want := range map[string]reject.Reason{"1001": reject.NotStarted, "1002": reject.Ended} {
		if reason, _ := b.Closed(0, []byte(sku), false); reason != want {
			t.Errorf("%s: %v, want %v", sku, reason, want)
		}
	}
}
