package sqlstore_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger/memstore"
	"sluice/stockgate/ledger/protocol"
)

// Ledgers in memory are followed change by change, as those of Redis are.
func TestMemory_IsSettledAsRedisIs(t *testing.T) {
	const sku = "1001"
	ctx, now := t.Context(), time.Now().UnixMilli()
	ledger := memstore.New()
	ledger.KeepChanges()
	_ = must(ledger.SetTotal(ctx, sku, 9, 0))(t)
	store := must(sqlstore.Open(sqlstore.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "settle.db")}))(t)
	defer store.Close()
	_ = must(store.Migrate(ctx))(t)
	source := settle.Memory{Store: ledger}
	settler := must(settle.New(source, store, settle.Options{Batch: 2, Log: slog.New(slog.DiscardHandler)}))(t)
	do := func(op protocol.Op, serials ...string) {
		for _, serial := range serials {
			_ = must(ledger.Finish(ctx, sku, now, now+60_000, op, []protocol.Item{{Serial: serial}},
				make([]protocol.Done, 1)))(t)
		}
	}
	is := func(sold, left int64) settle.Comparison {
		t.Helper()
		if err := settler.Drain(ctx, sku); err != nil {
			t.Fatal(err)
		}
		c, ok, err := settle.Verify(ctx, source, store, sku)
		got := must(store.Left(ctx, sku))(t)
		if err != nil || !ok || !c.Equal() || c.Booked != sold || got != left {
			t.Errorf("%+v, %v, %v, %d left; want %d booked, %d left", c, ok, err, got, sold, left)
		}
		return c
	}
	_ = is(0, 9)
	for _, serial := range []string{"a", "b", "c", "d"} {
		_ = must(ledger.Reserve(ctx, sku, 0, now, now+60_000, []protocol.Item{{Serial: serial, User: serial, Quantity: 2}},
			make([]protocol.Code, 1)))(t)
	}
	do(protocol.Confirm, "a", "b", "c")
	do(protocol.Release, "d")
	_ = is(6, 3)
	do(protocol.Refund, "b")
	_ = must(ledger.Add(ctx, sku, 5, "delivery"))(t)
	if c := is(4, 10); c.Records != 4 {
		t.Errorf("%d records are compared: want 4", c.Records)
	}
	if n := settler.Stats().Rebuilds; n != 0 {
		t.Errorf("%d times the ledger was read whole: want 0", n)
	}
	_ = must(settler.Rebuild(ctx, sku))(t)
	_ = is(4, 10)
}
