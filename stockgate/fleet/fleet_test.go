package fleet

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const key = "sluice:shop:fleet"

// told is what one instance was told, in order.
type told struct {
	*Member
	mu  sync.Mutex
	all []Share
}

func (t *told) tell(s Share) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, s)
}

func (t *told) ofs() (ofs []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.all {
		ofs = append(ofs, s.Of)
	}
	return ofs
}

func join(t *testing.T, address string) *told {
	t.Helper()
	to, start := &told{}, time.Now()
	m, err := New(Options{
		Redis: redisconn.Options{Addresses: []string{address}, PoolSize: 1, ConnectTimeout: 5 * time.Second,
			Timeout: 5 * time.Second, BreakerErrors: 100, BreakerPause: time.Second},
		Name: "shop", Instance: "test", Now: func() int64 { return int64(time.Since(start)) }, Tell: to.tell,
	})
	if err != nil {
		t.Fatal(err)
	}
	to.Member = m
	m.Join()
	t.Cleanup(m.Close)
	return to
}

// counted tells whether all count all, each in a place of its own.
func counted(all ...*told) bool {
	places := map[int]bool{}
	for _, m := range all {
		s := m.last()
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
	a, b, c := join(t, server.Addr), join(t, server.Addr), join(t, server.Addr)
	testkit.Eventually(t, "three count three", func() bool { return counted(a, b, c) })
	redisNow := server.Client.Time(t.Context()).Val().UnixMicro() * 1000
	for _, m := range []*told{a, b, c} {
		now := m.options.Now()
		// Redis was asked before we read our clock: how long before, no test can bound. A clock of another unit or
		// sign is off by years.
		if off := now + int64(m.last().Clock) - redisNow; off < -int64(time.Minute) || off > int64(time.Minute) {
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
	a := join(t, server.Addr)
	testkit.Eventually(t, "it is alone", func() bool { return counted(a) })
	if n := server.Client.ZCard(t.Context(), key).Val(); n != 1 {
		t.Errorf("%d on the list, want 1", n)
	}
}

func TestFleet_TheLastNumberStandsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := join(t, server.Addr), join(t, server.Addr)
	testkit.Eventually(t, "two count two", func() bool { return counted(a, b) })
	before := len(a.ofs())
	server.Kill()
	testkit.Eventually(t, "both notice", func() bool { return a.beats.Away() && b.beats.Away() })
	server.Restart() // empty
	testkit.Eventually(t, "both are back", func() bool { return a.beats.Up() && b.beats.Up() })
	testkit.Eventually(t, "both are listed", func() bool { return server.Client.ZCard(t.Context(), key).Val() == 2 })
	for _, m := range []*told{a, b} {
		if !counted(a, b) {
			t.Errorf("%+v, want two still", m.last())
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
	a := join(t, server.Addr)
	if s := a.last(); s.Of != 0 {
		t.Errorf("%+v at once, want nothing yet", s)
	}
	testkit.Eventually(t, "it counts itself", func() bool { return counted(a) })
}

func TestFleet_ListOfAnotherKindIsNoAnswer(t *testing.T) {
	server := redistest.Start(t)
	server.Client.Set(t.Context(), key, "a shop's own", 0)
	a := join(t, server.Addr)
	testkit.Eventually(t, "it is noticed", func() bool { return a.beats.Away() })
	if text := server.Client.Get(t.Context(), key).Val(); text != "a shop's own" {
		t.Errorf("the key holds %q now", text)
	}
}

func TestFleet_ClosedMemberTellsNothingAndClosesTwice(t *testing.T) {
	a := join(t, redistest.Start(t).Addr)
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
	m := &Member{beats: redisconn.NewBeats(slog.New(slog.DiscardHandler), "lost", "found")}
	m.share.Store(&Share{Rank: 1, Of: 3})
	m.beats.Record(errors.New("away"))
	m.beats.Record(nil)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
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
	if got["sluice_fleet_instances"] != 3 || got["sluice_fleet_up"] != 1 || got["sluice_fleet_heartbeats_total"] != 2 {
		t.Errorf("%v", got)
	}
}

func TestFleet_RepliesThatMeanNothingAreErrors(t *testing.T) {
	for _, reply := range [][]any{
		nil, {"1", "2", nil}, {"1", "2", nil, "list"}, {"1", "2", nil, []any{"a"}}, {"1", "2", nil, []any{"a", 7}},
		{"1", "2", nil, []any{nil, "7"}}, {"x", "2", nil, []any{}}, {"1", nil, nil, []any{}}, {"1", "2", "-1", []any{}},
	} {
		if found, err := read(reply); err == nil {
			t.Errorf("%v was read as %+v", reply, found)
		}
	}
	if found, err := read([]any{"3", "4", "2.5e+3", []any{"a", "3000"}}); err != nil || found.micros != 3_000_004 ||
		found.before != 2500 || found.beats["a"] != 3000 {
		t.Errorf("%+v, %v", found, err)
	}
}

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
	a := join(t, server.Addr)
	testkit.Eventually(t, "it is alone", func() bool { return counted(a) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.Close()
	before := a.last()
	if a.beat(ctx); a.last() != before {
		t.Errorf("%+v, want %+v", a.last(), before)
	}
}
