package limits

import (
	"log/slog"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/admin"
	"sluice/config"
)

// divided is a configuration with one place in a window for each of so many instances; 0 = as many as Redis at address
// counts.
func divided(t *testing.T, address, scope, instances string) *config.Config {
	t.Helper()
	text := "name = \"shop\"\n" +
		"upstream.targets = [\"http://127.0.0.1:1\"]\nstock.source = \"off\"\nstock.redis.addresses = [\"" + address +
		"\"]\nfleet.instances = " + instances +
		"\n[limits.window]\nsize = \"1s\"\nmax = 3\nmax_per_sku = 0\nmax_delay = \"0s\"\nscope = \"" + scope +
		"\"\n[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\n"
	c, err := config.Parse("test", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// admits is how many requests the windows let into one of them.
func (s *WindowShare) admits(window int64) (n int) {
	for {
		if _, ok := s.windows.now.Load().Acquire(window*1e9, nil); !ok {
			return n
		}
		n++
	}
}

// Redis is not there, so that no instance can be counted: what has begun keeps what it has, and what begins has nothing
// yet.
func TestWindowShare_NothingIsAdmittedBeforeInstancesAreCounted(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	counting := divided(t, ln.Addr().String(), "fleet", "0")
	s := WindowShare{windows: newWindows(counting), now: func() int64 { return 0 }, metrics: prometheus.NewRegistry(),
		log: slog.New(slog.DiscardHandler)}
	defer s.Close()
	if err := s.Begin(counting); err != nil {
		t.Fatal(err)
	}
	if _, health := s.Counted(); health == admin.Healthy || s.admits(10) != 0 {
		t.Error("it is ready, or admits, and the instances are not counted")
	}
	for i, c := range []struct {
		scope, instances string
		want             int
	}{{"fleet", "3", 1}, {"fleet", "0", 1}, {"instance", "0", 3}, {"fleet", "0", 3}, {"fleet", "1", 3}} {
		next := divided(t, ln.Addr().String(), c.scope, c.instances)
		if err := s.Use(next, next); err != nil {
			t.Fatal(err)
		}
		if _, health := s.Counted(); health != admin.Healthy {
			t.Errorf("scope %q of %s: a gate that has begun is not ready", c.scope, c.instances)
		}
		if got := s.admits(int64(20 + i)); got != c.want {
			t.Errorf("scope %q of %s: %d admitted, want %d", c.scope, c.instances, got, c.want)
		}
	}
}

// A reload that cannot reach for Redis at all changes nothing, and fails again when it is tried again.
func TestWindowShare_ShareThatCannotBeCountedChangesNothing(t *testing.T) {
	three := divided(t, "127.0.0.1:1", "fleet", "3")
	s := WindowShare{windows: newWindows(three), now: func() int64 { return 0 }, metrics: prometheus.NewRegistry(),
		log: slog.New(slog.DiscardHandler)}
	defer s.Close()
	if err := s.Begin(three); err != nil {
		t.Fatal(err)
	}
	counting := divided(t, "127.0.0.1:1", "fleet", "0")
	counting.Stock.Redis.Addresses = nil
	for i := range 2 {
		if err := s.Use(counting, counting); err == nil {
			t.Errorf("attempt %d: no error without an address", i+1)
		}
		if got := s.admits(int64(10 + i)); got != 1 || s.by != sharesOf(three) {
			t.Errorf("attempt %d: %d admitted by %+v, want 1 by %+v", i+1, got, s.by, sharesOf(three))
		}
	}
}
