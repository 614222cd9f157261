package redisconn

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func open(t *testing.T, s *redistest.Server, pause time.Duration) *Client {
	t.Helper()
	return openMany(t, s, pause, 4)
}

func openMany(t *testing.T, s *redistest.Server, pause time.Duration, connections int) *Client {
	t.Helper()
	l, err := New(Options{
		Addresses:      []string{s.Addr},
		PoolSize:       connections,
		ConnectTimeout: 5 * time.Second, // the machine may be busy
		Timeout:        5 * time.Second,
		BreakerErrors:  5,
		BreakerPause:   pause,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// only is the one server of a link to a single Redis.
func only(l *Client) *server { return (*l.topology.Load()).(*server) }

func ping(t *testing.T, l *Client) error {
	return l.Do(t.Context(), func(ctx context.Context, c Commands) error { return c.Ping(ctx).Err() }, always)
}

func always(err error) error { return err }

func TestClient_OpenBreakerSendsNothing(t *testing.T) {
	server := redistest.Start(t)
	l := open(t, server, time.Hour)
	failed := errors.New("as if Redis had failed")
	for range 5 {
		err := l.Do(t.Context(), func(context.Context, Commands) error { return failed }, always)
		if !errors.Is(err, failed) {
			t.Fatalf("do: %v", err)
		}
	}
	before := server.Calls("ping")
	for range 3 {
		if err := ping(t, l); !errors.Is(err, ErrBreakerOpen) || errors.Is(err, failed) ||
			!strings.Contains(err.Error(), failed.Error()) {
			t.Fatalf("ping: %v", err)
		}
	}
	if n := server.Calls("ping") - before; n != 0 {
		t.Fatalf("%d pings were sent", n)
	}
}

func TestClient_ErrorsThatSayNothingOfRedisDoNotOpenTheBreaker(t *testing.T) {
	l := open(t, redistest.Start(t), time.Second)
	mistake := errors.New("an operator's mistake")
	for range 100 {
		err := l.Do(t.Context(), func(context.Context, Commands) error { return mistake },
			func(error) error { return nil })
		if !errors.Is(err, mistake) {
			t.Fatalf("do: %v", err)
		}
	}
}

// go-redis dials once a second when as many dials have failed as the pool is large; the breaker's try must not
// be told of an outage that is over.
func TestClient_TryAfterAPauseReallyConnects(t *testing.T) {
	server := redistest.Start(t)
	l := open(t, server, 100*time.Millisecond)
	server.Kill()
	testkit.Eventually(t, "open", func() bool { return errors.Is(ping(t, l), ErrBreakerOpen) })
	for range 20 {
		_ = only(l).session.Load().client.Ping(t.Context()).Err()
	}
	server.Restart()
	testkit.Eventually(t, "half open", func() bool { return only(l).breaker.State() == gobreaker.StateHalfOpen })
	testkit.Eventually(t, "back", func() bool {
		err := ping(t, l)
		if errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("a try failed while Redis was there: %v", err)
		}
		return err == nil
	})
}

func TestClient_ClosedLinkStaysClosed(t *testing.T) {
	l := open(t, redistest.Start(t), time.Second)
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	only(l).probeFirst.Store(true) // not even the breaker's try connects again
	if err := ping(t, l); err == nil {
		t.Fatal("a closed link pinged")
	}
}

func TestClient_CommandWithoutAnswerIsSentOnce(t *testing.T) {
	server := redistest.Start(t)
	l := openMany(t, server, 100*time.Millisecond, 1) // one connection, which is open when the server hangs
	if err := ping(t, l); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // also on a busy machine it is sent within that
	defer cancel()
	err := l.Do(ctx, func(ctx context.Context, c Commands) error { return c.Incr(ctx, "n").Err() }, always)
	server.Resume()
	if err == nil {
		t.Fatal("a hanging server answered")
	}
	testkit.Eventually(t, "the command runs", func() bool { return server.Calls("incr") == 1 })
	if n := server.Client.Get(t.Context(), "n").Val(); n != "1" {
		t.Fatalf("it ran %s times", n)
	}
}

// named opens a link to s whose server has the name that name says.
func named(t *testing.T, s *redistest.Server, name func() string) *Client {
	t.Helper()
	l, err := New(Options{
		Addresses: []string{s.Addr}, PoolSize: 2, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: 1_000, BreakerPause: time.Second,
		Identify: func(context.Context, redis.Cmdable) (string, error) { return name(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestClient_QuestionKnowsTheServerThatItReaches(t *testing.T) {
	server := redistest.Start(t)
	var name atomic.Pointer[string]
	old, later := "old", "later"
	name.Store(&old)
	l := named(t, server, func() string { return *name.Load() })
	sent := 0
	asked := func() (on string) {
		err := l.To("").Ask(t.Context(), func(ctx context.Context, c Commands, server string) error {
			on = server
			_, err := c.Incr(ctx, "n").Result()
			if err == nil {
				sent++
			}
			return err
		}, always)
		if err != nil {
			return err.Error()
		}
		return on
	}
	if on := asked(); on != old {
		t.Fatalf("on %q", on)
	}
	name.Store(&later)
	if on := asked(); on != old { // its connection is still the old one's
		t.Fatalf("on %q", on)
	}
	if err := server.Client.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the other server", func() bool { return asked() == later })
	if n := server.Client.Get(t.Context(), "n").Val(); n != strconv.Itoa(sent) {
		t.Fatalf("%s questions arrived of %d", n, sent)
	}
}

func TestClient_MixedUpReplyClosesAllConnections(t *testing.T) {
	server := redistest.Start(t)
	l := named(t, server, func() string { return "the same" })
	before := only(l).session.Load()
	if err := ping(t, l); err != nil {
		t.Fatal(err)
	}
	if err := l.Do(t.Context(), func(context.Context, Commands) error { return ErrReplyMismatch },
		always); !errors.Is(err, ErrReplyMismatch) {
		t.Fatal(err)
	}
	if err := before.client.Ping(t.Context()).Err(); !errors.Is(err, redis.ErrClosed) {
		t.Fatalf("the old connections: %v", err)
	}
	if err := ping(t, l); err != nil {
		t.Fatal(err)
	}
}
