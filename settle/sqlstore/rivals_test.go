package sqlstore_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
)

// rivalDatabase is a database at which another settler is faster, once after the first cursor was read, and once before
// the first orders are read.
type rivalDatabase struct {
	settle.Database
	afterCursor, beforeOrders func()
}

func once(f *func()) {
	if now := *f; now != nil {
		*f = nil
		now()
	}
}

func (r *rivalDatabase) Cursor(ctx context.Context, sku string) (settle.Cursor, bool, error) {
	defer once(&r.afterCursor)
	return r.Database.Cursor(ctx, sku)
}

func (r *rivalDatabase) Orders(ctx context.Context, sku string, born int64, see func(settle.Record)) error {
	once(&r.beforeOrders)
	return r.Database.Orders(ctx, sku, born, see)
}

func TestSettler_WhatAnotherOneHasSettledIsNotLost(t *testing.T) {
	t.Parallel()
	for name, trimmed := range map[string]bool{"its cursor is old": false, "the stream has a hole": true} {
		t.Run(name, func(t *testing.T) {
			url := "sqlite:" + filepath.Join(t.TempDir(), "settle.db")
			s := newSite(t, redistest.Start(t), url, sqlstore.Stock{})
			const sku = "rivals"
			s.ledger.set(sku, 100)
			s.ledger.buy(sku, 0, 5)
			s.drain(sku)
			db := &rivalDatabase{Database: s.store, beforeOrders: func() { s.ledger.buy(sku, 10, 1); s.drain(sku) }}
			if trimmed {
				s.ledger.buy(sku, 5, 3)
				s.redis.Client.XTrimMaxLen(t.Context(), "sluice:shop:{"+sku+"}:q", 1)
			} else {
				db.afterCursor = func() { s.ledger.buy(sku, 5, 3); s.drain(sku) }
			}
			slow := must(settle.New(s.stream, db, settle.Options{
				Batch: 7, Ledger: s.ledger, Log: slog.New(slog.DiscardHandler),
			}))(t)
			if err := slow.Drain(t.Context(), sku); err != nil {
				t.Fatal(err)
			}
			if state, lost := s.ledger.state(sku), slow.Stats().LostOrders; state != "on" || lost != 0 {
				t.Errorf("the SKU is %s, %d orders were lost: want on, 0", state, lost)
			}
			if !trimmed && db.beforeOrders == nil {
				t.Error("orders were compared for a cursor that had moved")
			}
			s.equal(sku)
		})
	}
}
