package sqlstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/settler"
	"sluice/internal/storetest"
	"sluice/settle"
	"sluice/stockgate/ledger"
)

// testLedger is the real ledger, as gates use it and as settlers change it.
type testLedger struct {
	*settler.Ledgers
	t      testing.TB
	server *redistest.Server
	store  *ledger.Store
}

// newLedger is the ledger in a store, which settlers of no home call.
func newLedger(t testing.TB, server *redistest.Server, store *ledger.Store) *testLedger {
	return &testLedger{settler.NewLedgers(store, "", 0), t, server, store}
}

func openLedger(t testing.TB, server *redistest.Server) *testLedger {
	t.Helper()
	l := newLedger(t, server, openStore(t, server))
	t.Cleanup(func() { l.store.Close() })
	return l
}

func openStore(t testing.TB, server *redistest.Server) *ledger.Store {
	t.Helper()
	store := must(ledger.NewStore(ledger.StoreOptions{Name: "shop",
		Options: storetest.Redis(server.Addr), Events: 1_000_000, Acknowledged: true, Visitor: true,
	}))(t)
	store.Settle = time.Hour // a frozen ledger stays so, as long as a test looks at it
	return store
}

// forget is a restart of the gates: they have seen nothing.
func (l *testLedger) forget() {
	l.store.Close()
	l.store = openStore(l.t, l.server)
	l.Ledgers = settler.NewLedgers(l.store, "", 0)
}

// of is the ledger as settlers of a home call it.
func (l *testLedger) of(home string) *settler.Ledgers { return settler.NewLedgers(l.store, home, 0) }

func (l *testLedger) set(sku string, total int64) {
	l.t.Helper()
	_ = must(l.store.SetTotal(context.Background(), sku, total, 0))(l.t)
}

// epoch is that of the ledger of sku; 0 = it has none. In a later sale of a SKU an order must name it.
func (l *testLedger) epoch(sku string) int64 {
	l.t.Helper()
	s, _, err := l.store.ReadStock(context.Background(), sku)
	if err != nil {
		l.t.Fatal(err)
	}
	return s.Epoch
}

func (l *testLedger) reserve(sku, serial, user string, quantity int64) {
	l.t.Helper()
	codes := make([]ledger.Code, 1)
	now := time.Now().UnixMilli()
	_, err := l.store.Reserve(context.Background(), sku, l.epoch(sku), now, now+time.Hour.Milliseconds(),
		[]ledger.Item{{Serial: serial, User: user, Quantity: quantity}}, codes)
	if err != nil || codes[0] != ledger.Held {
		l.t.Fatalf("reserve %q: code %d, %v", serial, codes[0], err)
	}
}

func (l *testLedger) finish(sku, op, serial string) {
	l.t.Helper()
	done := make([]ledger.Done, 1)
	now := time.Now().UnixMilli()
	_, err := l.store.Finish(context.Background(), sku, now, now+time.Hour.Milliseconds(), ledger.Op(op),
		[]ledger.Item{{Serial: serial}}, done)
	if err != nil || done[0] != ledger.Changed {
		l.t.Fatalf("%s %q: %d, %v", op, serial, done[0], err)
	}
}

// buy reserves and confirms n orders of one unit, numbered from first on.
func (l *testLedger) buy(sku string, first, n int) {
	l.t.Helper()
	for i := first; i < first+n; i++ {
		serial := fmt.Sprintf("%s-%d", sku, i)
		l.reserve(sku, serial, fmt.Sprintf("u%d", i), 1)
		l.finish(sku, "confirm", serial)
	}
}

func (l *testLedger) change(sku string, to ledger.State) {
	l.t.Helper()
	_ = must(l.store.SetState(context.Background(), sku, to))(l.t)
}

func (l *testLedger) freeze(sku string) { l.t.Helper(); l.change(sku, ledger.Frozen) }
func (l *testLedger) open(sku string)   { l.t.Helper(); l.change(sku, ledger.On) }

func (l *testLedger) state(sku string) string {
	l.t.Helper()
	s, _, err := l.store.ReadStock(context.Background(), sku)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(s.State)
}

// Adopt is what an operator does with orders of the shop.
func (l *testLedger) Adopt(ctx context.Context, sku string, orders []settle.Record) error {
	for _, r := range orders {
		items := []ledger.Item{{Serial: r.Serial, User: r.User, Quantity: r.Quantity}}
		now := time.Now().UnixMilli()
		if _, err := l.store.Finish(ctx, sku, now, now, ledger.Adopt, items, make([]ledger.Done, 1)); err != nil {
			return err
		}
	}
	return nil
}
