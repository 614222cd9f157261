package sale

import (
	"log/slog"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var begins = time.Date(2026, 11, 11, 0, 0, 0, 0, time.FixedZone("CST", 8*3600))

// eleven is two hours of 1001 and 1002.
func eleven() Sale {
	return Sale{Name: "double-11", SKUs: []string{"1001", "1002"}, Starts: begins, Ends: begins.Add(2 * time.Hour)}
}

// still is a schedule that is alone, beats only when the test says so, and whose clock stands at a time.
func still(t *testing.T, at time.Time, sales ...Sale) (*Schedule, *testkit.Log) {
	t.Helper()
	j := &testkit.Log{}
	log := slog.New(slog.NewTextHandler(j, nil))
	b := &Schedule{o: Options{Now: func() int64 { return 0 },
		Wall: func() time.Time { return at }, Log: log}, beats: redisconn.NewBeats(log, "lost", "found")}
	b.Use(sales, false)
	b.beat(t.Context())
	return b, j
}

// instance is a running schedule on a Redis, whose machine's clock is wrong by so much.
func instance(t *testing.T, r *redistest.Server, wrongBy time.Duration, sales ...Sale) *Schedule {
	t.Helper()
	start := time.Now()
	link, err := redisconn.New(redisconn.Options{Addresses: []string{r.Addr}, PoolSize: 1, ConnectTimeout: 5 * time.Second,
		Timeout: 5 * time.Second, BreakerErrors: 100, BreakerPause: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	b, err := New(Options{
		Name: "shop",
		Link: link, Now: func() int64 { return int64(time.Since(start)) },
		Wall: func() time.Time { return time.Now().Add(wrongBy) }, Log: slog.New(slog.DiscardHandler),
	}, sales)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}
