package sqlstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// instance is the ledger as an instance of the gateway uses it.
func (s *site) instance() *testLedger {
	s.Helper()
	g := newLedger(s.T, s.redis, must(ledger.NewStore(ledger.StoreOptions{Name: "shop",
		Options: storetest.Redis(s.redis.Addr), Events: 1_000_000, Acknowledged: true}))(s.T))
	g.store.Settle = 0
	s.Cleanup(func() { g.store.Close() })
	return g
}

// An order of two units is sold, and settled so. It is given back by another instance, which leaves after Redis has lost
// both: that leaves a tombstone. The database still says what was given back, and by whom it was bought.
func TestSettle_RowOfAnOrderThatIsATombstoneKeepsItsUnitsAndItsBuyer(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), sqlstore.Stock{})
	const sku = "tomb"
	a, b := s.instance(), s.instance()
	a.set(sku, 50)
	a.buy(sku, 0, 2)
	b.buy(sku, 2, 2)
	s.drain(sku)
	lost := s.dump(sku)
	a.reserve(sku, "x", "ann", 2)
	a.finish(sku, "confirm", "x")
	s.drain(sku)
	b.finish(sku, "refund", "x")
	lost()
	_, _ = a.store.Reserve(t.Context(), sku, 0, 1, 2, []ledger.Item{{Serial: "new", Quantity: 1}}, make([]ledger.Code, 1))
	testkit.Check(t, b.store.Close())
	testkit.Eventually(t, "it is open", func() bool {
		now := time.Now()
		_, err := a.store.Recover(t.Context(), sku, now.UnixMilli(), now.Add(time.Hour).UnixMilli())
		if err != nil {
			t.Log(err)
		}
		_ = s.settler.Drain(t.Context(), sku)
		return a.state(sku) == "on"
	})
	s.drain(sku)
	s.equal(sku)
	testkit.Want(t, "left", s.left(sku), 46)
	cursor, _, err := s.store.Cursor(t.Context(), sku)
	testkit.Check(t, err)
	testkit.Check(t, s.store.Orders(t.Context(), sku, cursor.Born, func(r settle.Record) {
		if r.Serial == "x" && (r.Status != 'R' || r.Quantity != 2 || r.User != "ann") {
			t.Errorf("the row is %c, %d units of %q: want R, 2, ann", r.Status, r.Quantity, r.User)
		}
	}))
}
