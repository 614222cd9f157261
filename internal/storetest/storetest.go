// Package storetest opens ledgers and a shop's stock in a Redis of the test's own process, and the control API over
// them. Only tests import it. What is about the scripts, or about Redis itself, is tested on a redis-server: redistest
// starts it, and Link is connected with it.
package storetest

import (
	"log/slog"
	"testing"
	"time"

	"sluice/internal/embedredis"
	"sluice/stockgate"
	"sluice/stockgate/layout"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// Ledger is a store without any ledger, until the test ends.
func Ledger(t testing.TB) *ledger.Store {
	t.Helper()
	r, err := ledger.NewStore(ledger.StoreOptions{Name: "shop", Options: options(server(t)), Events: 10_000,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// Shop is stock of a shop, a counter for each SKU, until the test ends.
func Shop(t testing.TB) *stockgate.Redis {
	t.Helper()
	return ShopIn(t, server(t))
}

// ShopIn is stock of a shop in a server of the test, which writes to it what no store would.
func ShopIn(t testing.TB, s *embedredis.Server) *stockgate.Redis {
	t.Helper()
	l, err := layout.New(layout.Options{Type: layout.Counter, Key: "seckill:stock:$sku"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := stockgate.NewRedis(options(s), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func server(t testing.TB) *embedredis.Server {
	s := embedredis.Start()
	t.Cleanup(s.Stop)
	return s
}

func options(s *embedredis.Server) redisconn.Options {
	// No call waits for a connection: go-redis keeps the timers of such waits for all its clients, and a timer of one
	// synctest bubble ends the process in another.
	return redisconn.Options{Addresses: []string{"memory"}, Dialer: s.Dial, PoolSize: 64, ConnectTimeout: time.Minute,
		Timeout: time.Minute, BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second,
		Log: slog.New(slog.DiscardHandler)}
}
