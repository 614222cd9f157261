package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

func redisOptions(server *redistest.Server) redisconn.Options {
	return redisconn.Options{
		Addresses: []string{server.Addr}, PoolSize: 4, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second,
	}
}

// testLedger is the real ledger, as gates use it.
type testLedger struct {
	t      testing.TB
	server *redistest.Server
	store  *ledger.Store
	home   string // the settlers that call it are of this home
}

func openLedger(t testing.TB, server *redistest.Server) *testLedger {
	t.Helper()
	l := &testLedger{t: t, server: server}
	l.forget()
	t.Cleanup(func() { l.store.Close() })
	return l
}

// forget is a restart of the gates: they have seen nothing.
func (l *testLedger) forget() {
	if l.store != nil {
		l.store.Close()
	}
	l.store = must(ledger.NewStore(ledger.StoreOptions{Name: "shop",
		Options: redisOptions(l.server), Events: 1_000_000, Acknowledged: true, Visitor: true,
	}))(l.t)
	l.store.Settle = time.Hour // a frozen ledger stays so, as long as a test looks at it
}

// of is the ledger as settlers of a home call it.
func (l *testLedger) of(home string) *testLedger {
	c := *l
	c.home = home
	return &c
}

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

// Acknowledge implements settle.ChangeableLedger.
func (l *testLedger) Acknowledge(ctx context.Context, sku, id string) error {
	_, err := l.store.Acknowledge(ctx, sku, id)
	return err
}

// JoinRecovery implements settle.ChangeableLedger.
func (l *testLedger) JoinRecovery(ctx context.Context, sku string, at settle.Ledger) error {
	return l.store.JoinRecovery(ctx, l.home, sku,
		ledger.StockVersion{Epoch: at.Epoch, Ver: at.Ver, State: ledger.State(at.State)}, at.Born)
}

// Outrun implements settle.ChangeableLedger.
func (l *testLedger) Outrun(ctx context.Context, sku string, at settle.Position) error {
	return l.store.Outrun(ctx, l.home, sku, ledger.StockVersion{Epoch: at.Epoch, Ver: at.Ver})
}

// Told implements settle.ChangeableLedger.
func (l *testLedger) Told(ctx context.Context, sku string, epoch int64) (opened bool, err error) {
	done, err := l.store.ToldSettled(ctx, l.home, sku, epoch)
	return done.Opened, err
}

// End implements settle.ChangeableLedger.
func (l *testLedger) End(ctx context.Context, sku string) error {
	done, err := l.store.SetPaid(ctx, sku, ledger.Ended)
	if err == nil && !done {
		err = errors.New("it is not on sale any more")
	}
	return err
}

// Reopen implements settle.ChangeableLedger.
func (l *testLedger) Reopen(ctx context.Context, sku string) (bool, error) {
	return l.store.SetPaid(ctx, sku, ledger.On)
}

// Refund implements settle.ChangeableLedger.
func (l *testLedger) Refund(ctx context.Context, sku, serial string) (bool, error) {
	now, done := time.Now().UnixMilli(), make([]ledger.Done, 1)
	_, err := l.store.Finish(
		ctx,
		sku,
		now,
		now+time.Hour.Milliseconds(),
		ledger.Refund,
		[]ledger.Item{{Serial: serial}},
		done,
	)
	return err == nil && done[0] != ledger.NotFound, err
}

// PutBack implements settle.ChangeableLedger.
func (l *testLedger) PutBack(ctx context.Context, sku string, orders []settle.Record) error {
	for _, r := range orders {
		now := time.Now().UnixMilli()
		err := l.store.PutBack(ctx, sku, now, now+time.Hour.Milliseconds(), []ledger.Known{{
			Item:   ledger.Item{Serial: r.Serial, User: r.User, Quantity: r.Quantity},
			Status: r.Status, Due: now, Done: ledger.StockVersion{Epoch: r.Epoch, Ver: r.Ver},
		}})
		if err != nil {
			return err
		}
	}
	return nil
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
