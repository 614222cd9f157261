package ledger

import (
	"log/slog"
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
