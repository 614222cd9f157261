package ledger

import (
	"log/slog"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// connect returns a Redis for s that is closed with the test. Its time-outs suit a busy machine.
func connect(t testing.TB, s *redistest.Server, texts map[string]string) *Store {
	t.Helper()
	r, err := open(optionsFor(s, 64), compile(texts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// single returns a Redis as connect does, with one connection, which its calls open. Others that are opened ahead may
// find a server that was restarted meanwhile, and have the instance look by itself.
func single(t testing.TB, s *redistest.Server) *Store {
	t.Helper()
	r := testkit.Must[*Store](t)(NewStore(optionsFor(s, 1)))
	t.Cleanup(func() { r.Close() })
	return r
}

func optionsFor(s *redistest.Server, connections int) StoreOptions {
	return StoreOptions{
		Name: "shop",
		Options: redisconn.Options{
			Addresses:      []string{s.Addr},
			PoolSize:       connections,
			ConnectTimeout: 5 * time.Second,
			Timeout:        5 * time.Second,
			BreakerErrors:  20,
			BreakerPause:   50 * time.Millisecond,
		},
		Events: 10_000,
		Log:    slog.New(slog.DiscardHandler),
	}
}

// withUnits runs a law on a Redis that has the SKU "1001" with 5 units and 2 a person.
func withUnits(t *testing.T, law func(t *testing.T, s *Store)) {
	t.Helper()
	s := connect(t, redistest.Start(t), texts())
	testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 5, 2))
	law(t, s)
}
