package fleet

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/limiter"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const key = "sluice:shop:fleet:{shop}:members"

// counted tells whether all count all, each in a place of its own.
func counted(all ...*told) bool {
	places := map[int]bool{}
	for _, m := range all {
		s := m.Share()
		if s.Of != len(all) {
			return false
		}
		places[s.Rank] = true
	}
	return len(places) == len(all)
}

func TestFleet_InstancesCountEachOther(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b, c := join(t, server.Addr, "test"), join(t, server.Addr, "test"), join(t, server.Addr, "test")
	testkit.Eventually(t, "three count three", func() bool { return counted(a, b, c) })
	redisNow := server.Client.Time(t.Context()).Val().UnixMicro() * 1000
	for _, m := range []*told{a, b, c} {
		now := m.options.Now()
		// Redis was asked before we read our clock: how long before, no test can bound. A clock of another unit or
		// sign is off by years.
		if off := now + int64(m.Share().Clock) - redisNow; off < -int64(time.Minute) || off > int64(time.Minute) {
			t.Errorf("this clock is off the shared one by %v", time.Duration(off))
		}
	}
	c.Close()
	if err := server.Client.ZScore(t.Context(), key, c.roll.id).Err(); err != redis.Nil {
		t.Errorf("one that has left is on the list: %v", err)
	}
	testkit.Eventually(t, "two count two", func() bool { return counted(a, b) })
	if n := server.Client.PTTL(t.Context(), key).Val(); n <= 0 {
		t.Errorf("the list does not expire: %v", n)
	}
}

func TestFleet_DeadInstanceIsForgotten(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	now := server.Client.Time(t.Context()).Val().UnixMilli()
	if _, err := server.Client.Do(t.Context(), "ZADD", key, now, "killed").Result(); err != nil {
		t.Fatal(err)
	}
	a := join(t, server.Addr, "test")
	testkit.Eventually(t, "it is alone", func() bool { return counted(a) })
	if n := server.Client.ZCard(t.Context(), key).Val(); n != 1 {
		t.Errorf("%d on the list, want 1", n)
	}
}

func TestFleet_TheLastNumberStandsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := join(t, server.Addr, "test"), join(t, server.Addr, "test")
	testkit.Eventually(t, "two count two", func() bool { return counted(a, b) })
	before := len(a.ofs())
	server.Kill()
	testkit.Eventually(t, "both notice", func() bool { return a.beats.Away() && b.beats.Away() })
	server.Restart() // empty
	testkit.Eventually(t, "both are back", func() bool { return a.beats.Up() && b.beats.Up() })
	testkit.Eventually(t, "both are listed", func() bool { return server.Client.ZCard(t.Context(), key).Val() == 2 })
	for _, m := range []*told{a, b} {
		if !counted(a, b) {
			t.Errorf("%+v, want two still", m.Share())
		}
	}
	for _, of := range a.ofs()[before:] {
		if of != 2 {
			t.Errorf("it was told %v, want 2 from when it knew", a.ofs())
			break
		}
	}
}

func TestFleet_WithoutRedisAnInstanceBeginsAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	a := instanceOf(t, server.Addr, "test", "")
	a.Start()
	if s := a.Share(); s.Of != 0 {
		t.Errorf("%+v at once, want nothing yet", s)
	}
	testkit.Eventually(t, "it counts itself", func() bool { return counted(a) })
}

func TestFleet_ListOfAnotherKindIsNoAnswer(t *testing.T) {
	server := redistest.Start(t)
	server.Client.Set(t.Context(), key, "a shop's own", 0)
	a := instanceOf(t, server.Addr, "test", "")
	a.Start()
	testkit.Eventually(t, "it is noticed", func() bool { return a.beats.Away() })
	if text := server.Client.Get(t.Context(), key).Val(); text != "a shop's own" {
		t.Errorf("the key holds %q now", text)
	}
}

func TestFleet_ClosedMemberTellsNothingAndClosesTwice(t *testing.T) {
	a := join(t, redistest.Start(t).Addr, "test")
	a.Close()
	n := len(a.ofs())
	a.Close()
	if len(a.ofs()) != n {
		t.Error("it was told something after Close")
	}
}

func TestFleet_OptionsThatCannotWorkAreRejected(t *testing.T) {
	for _, o := range []Options{{}, {Name: "shop", Now: func() int64 { return 0 }, Tell: func(Share) {}}} {
		if _, err := New(o); err == nil {
			t.Errorf("joined with %+v", o)
		}
	}
}

func TestFleet_MetricsSayWhatIsCounted(t *testing.T) {
	f := instanceOf(t, "127.0.0.1:1", "test", "").Fleet
	f.share.Store(&Share{Rank: 1, Of: 3})
	f.beats.Record(errors.New("away"))
	f.beats.Record(nil)
	f.counts.Record(nil)
	f.UseRates(map[string]*limiter.FleetShare{"per_ip": sharedRate(1)})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(described{f})
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range all {
		for _, one := range family.GetMetric() {
			got[family.GetName()] += one.GetGauge().GetValue() + one.GetCounter().GetValue()
		}
	}
	if got["sluice_fleet_instances"] != 3 || got["sluice_fleet_up"] != 1 || got["sluice_fleet_heartbeats_total"] != 2 ||
		got["sluice_fleet_rate_calls_total"] != 1 || len(got) != 5 {
		t.Errorf("%v", got)
	}
}

// described is a collector of one instance.
type described struct{ *Fleet }

func (described) Describe(to chan<- *prometheus.Desc) { Describe(to) }

func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"0", "1789000000000", "1.789e+12", "-1", "inf", "nan", "1e400", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := whole(text); err == nil && (n < 0 || n >= 1<<53) {
			t.Errorf("%q is read as %s", text, strconv.FormatInt(n, 10))
		}
	})
}

func TestFleet_AnswerThatComesAfterCloseChangesNothing(t *testing.T) {
	server := redistest.Start(t)
	a := join(t, server.Addr, "test")
	testkit.Eventually(t, "it is alone", func() bool { return counted(a) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.Close()
	before := a.Share()
	if a.turn(ctx); a.Share() != before {
		t.Errorf("%+v, want %+v", a.Share(), before)
	}
}
