package stockgate

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/layout"
)

// exposition is what Prometheus would scrape.
type exposition string

func expose(t *testing.T, c prometheus.Collector) exposition { return exposition(testkit.Scrape(t, c)) }

func (x exposition) has(t *testing.T, want string) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(want)) {
		if !strings.Contains(string(x), strings.TrimSpace(line)+"\n") {
			t.Errorf("no line %q in\n%s", line, x)
		}
	}
}

func TestMetrics_CountRoundTripsAndNotSKUs(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	testkit.Check(t, s.Read(t.Context(), make([]string, 5), make([]layout.Reading, 5)))
	testkit.Check(t, s.Ping(t.Context()))
	testkit.Check(t, s.Set(t.Context(), "1001", 1))
	server.Kill()
	if s.Ping(t.Context()) == nil {
		t.Fatal("a killed server answered")
	}
	expose(t, s).has(t, `
# HELP sluice_redis_calls_total Round trips to Redis, one for a whole batch.
# TYPE sluice_redis_calls_total counter
sluice_redis_calls_total{operation="add"} 0
sluice_redis_calls_total{operation="bought"} 0
sluice_redis_calls_total{operation="list"} 0
sluice_redis_calls_total{operation="ping"} 2
sluice_redis_calls_total{operation="read"} 1
sluice_redis_calls_total{operation="set"} 1
# HELP sluice_redis_batch_size Commands in a round trip to Redis.
# TYPE sluice_redis_batch_size histogram
sluice_redis_batch_size_bucket{le="1"} 3
sluice_redis_batch_size_bucket{le="2"} 3
sluice_redis_batch_size_bucket{le="4"} 3
sluice_redis_batch_size_bucket{le="8"} 4
sluice_redis_batch_size_bucket{le="16"} 4
sluice_redis_batch_size_bucket{le="32"} 4
sluice_redis_batch_size_bucket{le="64"} 4
sluice_redis_batch_size_bucket{le="128"} 4
sluice_redis_batch_size_bucket{le="256"} 4
sluice_redis_batch_size_bucket{le="512"} 4
sluice_redis_batch_size_bucket{le="768"} 4
sluice_redis_batch_size_bucket{le="1024"} 4
sluice_redis_batch_size_bucket{le="+Inf"} 4
sluice_redis_batch_size_sum 8
sluice_redis_batch_size_count 4
# HELP sluice_redis_errors_total Round trips to Redis that failed, by kind.
# TYPE sluice_redis_errors_total counter
sluice_redis_errors_total{kind="breaker"} 0
sluice_redis_errors_total{kind="connection"} 1
sluice_redis_errors_total{kind="reply"} 0
sluice_redis_errors_total{kind="timeout"} 0
# HELP sluice_redis_up Whether the last round trip to Redis succeeded.
# TYPE sluice_redis_up gauge
sluice_redis_up 0
`)
}

func TestMetrics_FallbacksAreCountedByDecision(t *testing.T) {
	o := options()
	o.AllowOnError = true
	g := stepped(t, o, NewMemory())
	g.poller.health.record(1, errors.New("gone"))
	g.Enter(1, []byte("1001"), nil)
	expose(t, g).has(t, `
# HELP sluice_stock_fallback_total Requests that stock.on_error decided, since the stock could not be known.
# TYPE sluice_stock_fallback_total counter
sluice_stock_fallback_total{decision="allow"} 1
sluice_stock_fallback_total{decision="reject"} 0
`)
}

func TestMetrics_ErrorsAreSortedByKind(t *testing.T) {
	for err, want := range map[error]failure{
		context.DeadlineExceeded: timedOut,
		redis.ErrPoolTimeout:     disconnected,
		io.EOF:                   disconnected,
		redis.ErrNoScript:        rejected,
	} {
		if got := kindOf(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
