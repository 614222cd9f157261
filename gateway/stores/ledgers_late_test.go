package stores_test

import (
	"context"
	"log/slog"
	"testing"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/storetest"
	"sluice/stockgate/ledger"
)

// slowStore is a store that a reserver reaches late.
type slowStore struct {
	*ledger.Store
	reached chan struct{}
}

func (s slowStore) Finish(ctx context.Context, sku string, now, keep int64, op ledger.Op, items []ledger.Item,
	done []ledger.Done) (ledger.StockVersion, error) {
	<-s.reached
	return s.Store.Finish(ctx, sku, now, keep, op, items, done)
}

// An order that was adopted and refunded must not be sold again by what the reserver still had to say of the former.
func TestLedgersLate_WhatWasDecidedByHandIsNotDoneOnceMore(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 0)
	late := slowStore{k.Store, make(chan struct{})}
	reserver, err := ledger.New(ledger.Options{Secret: make([]byte, 16), Log: slog.New(slog.DiscardHandler)}, late, nil)
	if err != nil {
		t.Fatal(err)
	}
	k.Control.Ledgers = stores.NewLedgers(config.Default(), k.Store, func() *ledger.Reserver { return reserver })
	k.Says(200, nil, "POST", "/stock/1001", `{"set": 1, "limit": 0}`)
	reserver.Reserve(0, ledger.Order{SKU: []byte("1001"), Key: []byte("other"), Quantity: 1})
	k.Says(200, storetest.Words(`"units":1`), "POST", "/stock/1001/recover",
		`{"orders": [{"serial": "one", "user": "7", "quantity": 1}], "apply": true}`)
	elsewhere := storetest.NewAPI(t, k.Store, 0)
	elsewhere.Says(200, storetest.Words("refunded"), "POST", "/reservations/one/refund?sku=1001", "")
	close(late.reached)
	reserver.Close(t.Context())
	s, _, err := k.Store.ReadStock(t.Context(), "1001")
	if err != nil || s.Sold != 0 {
		t.Errorf("sold %d, %v: the refunded order is back", s.Sold, err)
	}
}
