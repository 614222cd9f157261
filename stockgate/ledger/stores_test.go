package ledger

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sluice/internal/embedredis"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// onRedis returns a Redis with 1001: 5 units, 2 a person, "a" reserved and "b" confirmed for ann.
func onRedis(t testing.TB) (*redistest.Server, *Store) {
	t.Helper()
	server := redistest.Start(t)
	return server, storeOn(t, server, 64)
}

// storeOn returns a store on a server without a ledger, which gets that of onRedis.
func storeOn(t testing.TB, server *redistest.Server, connections int) *Store {
	t.Helper()
	r := testkit.Must[*Store](t)(NewStore(optionsFor(server, connections)))
	t.Cleanup(func() { r.Close() })
	testkit.Must[Stock](t)(r.SetTotal(context.Background(), "1001", 5, 2))
	takeUnit(t, r, "a", "ann")
	takeUnit(t, r, "b", "ann")
	finishOne(t, r, Confirm, "b")
	return r
}

// args are the words of a command.
func args(command string) (all []any) {
	for _, word := range strings.Fields(command) {
		all = append(all, word)
	}
	return all
}

// storeInProcess is a store without any ledger, in a Redis of this process.
func storeInProcess(t testing.TB) *Store {
	t.Helper()
	s := embedredis.Start()
	t.Cleanup(s.Stop)
	// No call waits for a connection: go-redis keeps the timers of such waits for all its clients, and a timer of one
	// synctest bubble ends the process in another.
	r := testkit.Must[*Store](t)(NewStore(StoreOptions{Name: "shop", Events: 10_000, Log: slog.New(slog.DiscardHandler),
		Options: redisconn.Options{Addresses: []string{"memory"}, Dialer: s.Dial, PoolSize: 64, ConnectTimeout: time.Minute,
			Timeout: time.Minute, BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second,
			Log: slog.New(slog.DiscardHandler)}}))
	t.Cleanup(func() { _ = r.Close() })
	return r
}
