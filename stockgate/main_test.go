package stockgate

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/stockgate/layout"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// layouts are the ways to keep stock in Redis that the tests know.
func layouts() map[string]layout.Options {
	return map[string]layout.Options{
		"counter":   {Type: layout.Counter, Key: "seckill:{$sku}:stock"},
		"hash_sold": {Type: layout.HashSold, Key: "$sku", TotalField: "total", SoldField: "ordered", Prefix: "shop_"},
		"hash_left": {Type: layout.HashLeft, Key: "goods:$sku", LeftField: "inStock"},
	}
}

// eachStore runs a law on a real Redis in each layout.
func eachStore(t *testing.T, law func(t *testing.T, s *Redis)) {
	for name, o := range layouts() {
		t.Run(name, func(t *testing.T) {
			law(t, dial(t, redistest.Start(t), o))
		})
	}
}

// dial returns a Redis for s that is closed with the test.
func dial(t testing.TB, s *redistest.Server, o layout.Options) *Redis {
	t.Helper()
	l, err := layout.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRedis(RedisOptions{
		Addresses:      []string{s.Addr},
		PoolSize:       4,
		ConnectTimeout: 5 * time.Second,
		Timeout:        5 * time.Second, // the machine may be busy; outages set their own
		BreakerErrors:  20,
		BreakerPause:   50 * time.Millisecond,
	}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// ticking is a clock that starts at zero.
func ticking() func() int64 {
	start := time.Now()
	return func() int64 { return int64(time.Since(start)) }
}

// options suit a test that must not be hurried: waits are long, logs go nowhere.
func options() Options {
	return Options{
		Now:  ticking(),
		Wait: 20 * time.Second,
		Log:  slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// open returns a running gate that is closed with the test.
func open(t testing.TB, o Options, src Source) *Gate {
	t.Helper()
	g, err := New(o, src)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func name(i int) []byte { return fmt.Appendf(nil, "sku-%d", i) }
