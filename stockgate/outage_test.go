package stockgate

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// outage opens a gate over a Redis that the test will break: short times, so that the test is short.
func outage(t *testing.T, server *redistest.Server, allow bool) (*Gate, *Redis, Options) {
	t.Helper()
	l, err := layout.New(layouts()["counter"])
	testkit.Check(t, err)
	s, err := NewRedis(RedisOptions{
		Addresses:      []string{server.Addr},
		PoolSize:       4,
		ConnectTimeout: 500 * time.Millisecond,
		Timeout:        100 * time.Millisecond,
		BreakerErrors:  5,
		BreakerPause:   100 * time.Millisecond,
	}, l)
	testkit.Check(t, err)
	t.Cleanup(func() { s.Close() })
	o := options()
	o.AllowOnError = allow
	return open(t, o, s), s, o
}

func enters(g *Gate, o Options, sku string, want reject.Reason) func() bool {
	return func() bool { return left(g, []byte(sku), g.Enter(o.Now(), []byte(sku), nil)) == want }
}

func TestOutage_KilledRedisIsDecidedByOnErrorAndBackByItself(t *testing.T) {
	t.Parallel()
	for _, allow := range []bool{false, true} {
		server := redistest.Start(t)
		g, s, o := outage(t, server, allow)
		testkit.Check(t, server.Client.Set(t.Context(), "seckill:{1001}:stock", 0, 0).Err())
		testkit.Eventually(t, "sold out", enters(g, o, "1001", reject.SoldOut))

		server.Kill()
		want := reject.StockError
		if allow {
			want = reject.Admitted
		}
		testkit.Eventually(t, "on_error decides", enters(g, o, "1001", want))
		testkit.Eventually(
			t,
			"the breaker is open",
			func() bool { return errors.Is(s.Ping(t.Context()), redisconn.ErrBreakerOpen) },
		)
		if away := g.Away(o.Now()); away <= 0 {
			t.Fatalf("away for %v", away)
		}
		if got := left(g, []byte("never seen"), g.Enter(o.Now(), []byte("never seen"), nil)); got != want {
			t.Fatalf("enter a new SKU: %v, want %v", got, want)
		}

		server.Restart()
		testkit.Eventually(t, "the source is back", func() bool { return g.Away(o.Now()) == 0 })
		testkit.Eventually(t, "a server without keys knows no SKU", enters(g, o, "1001", reject.UnknownSKU))
		testkit.Check(t, server.Client.Set(t.Context(), "seckill:{1001}:stock", 1, 0).Err())
		testkit.Eventually(t, "on sale again", enters(g, o, "1001", reject.Admitted))
	}
}

func TestOutage_IdleGateNoticesThatRedisWentAway(t *testing.T) {
	server := redistest.Start(t)
	g, _, o := outage(t, server, false)
	testkit.Eventually(t, "a ping succeeded", func() bool { return server.Calls("ping") > 0 && g.Away(o.Now()) == 0 })
	server.Kill()
	testkit.Eventually(t, "noticed", func() bool { return g.Away(o.Now()) > 0 })
}

func TestOutage_GateStartsWithoutRedisAndFindsItLater(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	g, _, o := outage(t, server, false)
	testkit.Eventually(t, "away", func() bool { return g.Away(o.Now()) > 0 })
	server.Restart()
	testkit.Check(t, server.Client.Set(t.Context(), "seckill:{1001}:stock", 1, 0).Err())
	testkit.Eventually(t, "on sale", enters(g, o, "1001", reject.Admitted))
}

func TestOutage_CallsThatTheBreakerStoppedAreCounted(t *testing.T) {
	server := redistest.Start(t)
	_, s, _ := outage(t, server, false)
	server.Kill()
	testkit.Eventually(
		t,
		"the breaker is open",
		func() bool { return errors.Is(s.Ping(t.Context()), redisconn.ErrBreakerOpen) },
	)
	if s.metrics.errors[leftAlone].Load() == 0 {
		t.Fatal("not counted")
	}
}

func TestOutage_CallerWhoGivesUpDoesNotOpenTheBreaker(t *testing.T) {
	s := dial(t, redistest.Start(t), layouts()["counter"])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := s.Ping(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("ping: %v", err)
		}
	}
	testkit.Check(t, s.Ping(t.Context()))
}

func TestOutage_OperatorsMistakesDoNotOpenTheBreaker(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	server.Client.HSet(t.Context(), "seckill:{1001}:stock", "total", 1)
	for range 100 {
		if _, err := s.Add(t.Context(), "1001", 1); err == nil || errors.Is(err, redisconn.ErrBreakerOpen) {
			t.Fatalf("add to a key of the wrong type: %v", err)
		}
	}
	testkit.Check(t, s.Ping(t.Context()))
}

func TestOutage_ClosedRedisAnswersWithAnError(t *testing.T) {
	s := dial(t, redistest.Start(t), layouts()["counter"])
	testkit.Check(t, s.Close())
	testkit.Check(t, s.Close())
	if err := s.Ping(t.Context()); err == nil {
		t.Fatal("a closed client pinged")
	}
}

func TestOutage_WrongPasswordIsAnErrorOfRedisAndNotOfAKey(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "secret")
	s := dial(t, server, layouts()["counter"])
	err := s.Read(t.Context(), []string{"1001"}, make([]layout.Reading, 1))
	if err == nil {
		t.Fatal("read without a password")
	}
}

// The log of an outage tells what becomes of orders: in observe mode none is rejected.
func TestOutage_LogTellsWhatBecomesOfOrders(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"cannot reach Redis; orders are rejected with 503":  func(*Options) {},
		"cannot reach Redis; check routes forward orders":   func(o *Options) { o.AllowOnError = true },
		"cannot reach Redis; orders are forwarded (mode = ": func(o *Options) { o.Observe = true },
		"cannot reach Redis; no route asks for stock":       func(o *Options) { o.Unasked = true },
	} {
		var text strings.Builder
		o := options()
		o.Log = slog.New(slog.NewTextHandler(&text, nil))
		change(&o)
		g := stepped(t, o, NewMemory())
		g.poller.health.record(0, errors.New("gone"))
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log has no %q: %s", want, &text)
		}
	}
}

// Who was let in while nothing was known of the SKU is not counted out in another request's place.
func TestOutage_RequestsOfAnOutageDoNotWidenPerUnit(t *testing.T) {
	o := options()
	o.AllowOnError, o.PerUnit = true, 1
	g, sku := stepped(t, o, NewMemory()), []byte("1001")
	enter := func(want reject.Reason) {
		t.Helper()
		if got := g.Enter(1, sku, nil); got != want {
			t.Fatalf("enter: %v, want %v", got, want)
		}
	}
	g.poller.health.record(0, errors.New("gone"))
	for range 5 {
		enter(reject.Admitted)
	}
	g.poller.health.record(1, nil)
	g.poller.publishReading(1, addEntry(g.table, 1, sku), reading(1))
	enter(reject.Admitted)
	for range 5 {
		enter(reject.Concurrency)
		g.Leave(sku) // one of the outage
	}
	enter(reject.Concurrency)
	g.Leave(sku)
	e := g.table.Find(sku)
	e.endedBefore = e.ended.Load()
	g.poller.publishReading(1, e, reading(1))
	enter(reject.Admitted)
	g.Leave(sku)
	if n := g.strays.all.Load() + int64(len(g.strays.of)); n != 0 {
		t.Errorf("%d strays are left", n)
	}
}
