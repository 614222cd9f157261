package redisconn

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
)

// alone makes the third sentinel know no others, and a master that the others do not have.
func alone(t *testing.T, w *redistest.Watched) (sentinel, master *redistest.Server) {
	t.Helper()
	other := redistest.Start(t)
	host, port, err := net.SplitHostPort(other.Addr)
	if err != nil {
		t.Fatal(err)
	}
	s := w.Sentinels[2].Client
	for _, words := range [][]any{{"sentinel", "remove", w.Name}, {"sentinel", "monitor", w.Name, host, port, "1"}} {
		if err := s.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return w.Sentinels[2], other
}

// locating is what l would find where the master was known to be before, if it was.
func locating(t *testing.T, w *redistest.Watched, before string, addresses ...string) (string, error) {
	t.Helper()
	o := Options{Topology: Sentinel, Addresses: addresses, MasterName: w.Name, PoolSize: 1,
		ConnectTimeout: 3 * time.Second, Timeout: 3 * time.Second,
		BreakerErrors: 100, BreakerPause: time.Second, Log: slog.New(slog.DiscardHandler)}
	place := watchMaster(o, w.Name)
	defer place.close()
	if before != "" {
		place.last.Store(&vote{address: before})
	}
	return place.locate(t.Context())
}

// Behind a partition with a master that was replaced there may be a sentinel that does not know of that.
func fewerThanHalf(t *testing.T, w *redistest.Watched) {
	lone, left := alone(t, w)
	dead := redistest.Start(t)
	dead.Kill()
	if at, err := locating(t, w, "", lone.Addr, dead.Addr, dead.Addr); err == nil || !strings.Contains(err.Error(),
		"no 2 of 3 sentinels agree") {
		t.Errorf("one of three was believed: %q, %v", at, err)
	}
	if at, err := locating(t, w, left.Addr, lone.Addr, dead.Addr, w.Sentinels[0].Addr); err == nil {
		t.Errorf("two that contradict each other were believed: %q", at)
	}
	at, err := locating(t, w, left.Addr, lone.Addr, w.Sentinels[0].Addr, w.Sentinels[1].Addr)
	if err != nil || at != w.Master().Addr {
		t.Errorf("two of three say %s, not %q, %v", w.Master().Addr, at, err)
	}
	for range 20 { // whoever answers first
		at, err = locating(t, w, left.Addr, w.Sentinels[0].Addr, lone.Addr)
		if err != nil || at != left.Addr {
			t.Fatalf("of two that contradict each other the later word was not kept: %q, %v", at, err)
		}
	}
	if at, err = locating(t, w, "", w.Sentinels[0].Addr, dead.Addr); err != nil || at != w.Master().Addr {
		t.Errorf("one of two is enough: %q, %v", at, err)
	}
}

// Users are most often made on the servers alone.
func withoutUser(t *testing.T, w *redistest.Watched) {
	for _, s := range w.Servers {
		if err := s.Client.Do(t.Context(), "acl", "setuser", "gate", "on", ">a secret", "~*", "&*",
			"+@all").Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, topology := range []string{Sentinel, Auto} {
		l := behind(t, w, func(o *Options) {
			o.Topology, o.Username, o.Password = topology, "gate", func() string { return "a secret" }
			if topology == Auto {
				o.MasterName = ""
			}
		})
		if err := ping(t, l); err != nil {
			t.Errorf("%s: %v", topology, err)
		}
	}
	l := behind(t, w, func(o *Options) { o.Username, o.Password = "gate", func() string { return "a wrong one" } })
	if err := ping(t, l); !redis.HasErrorPrefix(err, "WRONGPASS") {
		t.Errorf("a wrong password came through to the servers: %v", err)
	}
}
