package sqlstore_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/settle"
	"sluice/settle/sqlstore"
)

// site is a Redis with ledgers, a database, and a settler between them.
type site struct {
	*testing.T
	redis   *redistest.Server
	ledger  *testLedger
	stream  settle.Stream
	url     string
	store   *sqlstore.Store
	settler *settle.Settler
}

func newSite(t *testing.T, server *redistest.Server, url string, stock sqlstore.Stock) *site {
	t.Helper()
	s := &site{T: t, redis: server, ledger: openLedger(t, server), url: url,
		stream: settle.Stream{Name: "shop", Redis: storetest.Link(t, server.Addr)}}
	s.store = must(sqlstore.Open(sqlstore.Options{URL: url, Stock: stock}))(t)
	t.Cleanup(func() { s.store.Close() })
	_ = must(s.store.Migrate(t.Context()))(t)
	s.settler = must(settle.New(s.stream, s.store, settle.Options{
		Batch: 7, Ledger: s.ledger, Log: slog.New(slog.DiscardHandler), Givebacks: s.store, Auditor: s.store,
		Paid: settle.Paid{Every: time.Hour, Count: func(ctx context.Context, sku string) (int64, error) {
			return s.store.CountPaid(ctx, "SELECT SUM(units) FROM paid WHERE sku = :sku", sku)
		}},
	}))(t)
	return s
}

// must fails the test for an error, and else returns the value.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (s *site) drain(sku string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 40*time.Second) // a cursor that is stuck fails the test
	defer cancel()
	if err := s.settler.Drain(ctx, sku); err != nil {
		s.Fatal(err)
	}
}

// equal wants every record to be the same in Redis and in the database, and the books to balance.
func (s *site) equal(sku string) settle.Comparison {
	s.Helper()
	c, ok, err := settle.Verify(s.Context(), s.stream, s.store, sku)
	if err != nil || !ok {
		s.Fatalf("verify %q: %v, %v", sku, ok, err)
	}
	if !c.Equal() {
		s.Errorf("ledger and database differ: %+v", c)
	}
	return c
}

func (s *site) conflicts(sku, kind string) (found []string) {
	s.Helper()
	for _, c := range must(s.store.Conflicts(s.Context(), 1000))(s.T) {
		if c.SKU == sku && c.Kind == kind {
			found = append(found, c.Detail)
		}
	}
	return found
}

func (s *site) noConflict(sku, kind string) {
	s.Helper()
	if found := s.conflicts(sku, kind); len(found) != 0 {
		s.Errorf("conflicts %q: want none", found)
	}
}

// oneConflict wants one of a kind, which says all of these.
func (s *site) oneConflict(sku, kind string, says ...string) string {
	s.Helper()
	found := s.conflicts(sku, kind)
	if len(found) != 1 {
		s.Fatalf("conflicts %q: want one", found)
	}
	for _, text := range says {
		if !strings.Contains(found[0], text) {
			s.Errorf("conflict %q: want %q", found[0], text)
		}
	}
	return found[0]
}

func (s *site) isOn(sku string) {
	s.Helper()
	if state := s.ledger.state(sku); state != "on" {
		s.Errorf("%s is %s: want on", sku, state)
	}
}

// edits changes the record of an order in Redis by hand.
func (s *site) edits(sku, serial, record string) {
	s.redis.Client.HSet(s.Context(), "sluice:shop:{"+sku+"}:r", serial, record)
}

// until waits until what becomes true.
func (s *site) until(what string, is func() bool) {
	s.Helper()
	testkit.Eventually(s.T, what, is)
}

// runs runs a settler until the test ends.
func (s *site) runs(one *settle.Settler) {
	ctx, stop := context.WithCancel(s.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); one.Run(ctx) }()
	s.Cleanup(func() { stop(); <-ended })
}

func (s *site) left(sku string) int64 {
	s.Helper()
	return must(s.store.Left(s.Context(), sku))(s.T)
}

// everyDatabase gives f an empty database of each kind, one after another. make test uses SQLite alone.
func everyDatabase(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, "sqlite:"+filepath.Join(t.TempDir(), "settle.db")) })
	t.Run("postgres", func(t *testing.T) { f(t, dbtest.InPostgres(t)) })
	t.Run("mariadb", func(t *testing.T) { f(t, dbtest.InMariaDB(t)) })
}
