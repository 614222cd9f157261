package ledger

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func optionsFor(s *redistest.Server, connections int) redisstore.Options {
	return redisstore.Options{Name: "shop",
		Options: redisconn.Options{
			Addresses: []string{s.Addr}, PoolSize: connections, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
			BreakerErrors: 20, BreakerPause: 50 * time.Millisecond,
		},
		Events: 10_000, Log: slog.New(slog.DiscardHandler),
	}
}

// withUnits runs a law on a Redis that has the SKU "1001" with 5 units and 2 a person.
func withUnits(t *testing.T, law func(t *testing.T, s *redisstore.Store)) {
	t.Helper()
	s := ledgertest.Must[*redisstore.Store](t)(redisstore.New(optionsFor(redistest.Start(t), 64)))
	t.Cleanup(func() { s.Close() })
	ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 5, 2))
	law(t, s)
}

// onRedis returns a Redis with 1001: 5 units, 2 a person, "a" reserved and "b" confirmed for ann.
func onRedis(t testing.TB) (*redistest.Server, *redisstore.Store) {
	t.Helper()
	server := redistest.Start(t)
	return server, storeOn(t, server, 64)
}

// storeOn returns a store on a server without a ledger, which gets that of onRedis.
func storeOn(t testing.TB, server *redistest.Server, connections int) *redisstore.Store {
	t.Helper()
	r := ledgertest.Must[*redisstore.Store](t)(redisstore.New(optionsFor(server, connections)))
	t.Cleanup(func() { r.Close() })
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(context.Background(), "1001", 5, 2))
	ledgertest.Take(t, r, "a", "ann")
	ledgertest.Take(t, r, "b", "ann")
	ledgertest.Finish(t, r, protocol.Confirm, "b")
	return r
}

// args are the words of a command.
func args(command string) (all []any) {
	for _, word := range strings.Fields(command) {
		all = append(all, word)
	}
	return all
}
