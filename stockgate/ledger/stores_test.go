package ledger

import (
	"log/slog"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/memstore"
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

// eachStore runs a law on Redis, and at night on the store in memory as well; each has the SKU "1001" with 5 units and 2 a person.
func eachStore(t *testing.T, law func(t *testing.T, s protocol.Store)) {
	stores := map[string]func(t *testing.T) protocol.Store{
		"memory": func(*testing.T) protocol.Store { return memstore.New() },
		"redis": func(t *testing.T) protocol.Store {
			r := ledgertest.Must[*redisstore.Store](t)(redisstore.New(optionsFor(redistest.Start(t), 64)))
			t.Cleanup(func() { r.Close() })
			return r
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			if name == "memory" {
				testkit.Nightly(t, "it tests the store in memory")
			}
			s := open(t)
			ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 5, 2))
			law(t, s)
		})
	}
}
