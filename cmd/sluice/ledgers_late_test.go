package main

import (
	"context"
	"log/slog"
	"testing"

	"sluice/config"
	"sluice/stockgate/ledger"
)

// slowStore is a store that a desk reaches late.
type slowStore struct {
	ledger.Store
	reached chan struct{}
}

func (s slowStore) Finish(ctx context.Context, sku string, now, keep int64, op ledger.Op, items []ledger.Item, done []ledger.Done) (ledger.Hint, error) {
	<-s.reached
	return s.Store.Finish(ctx, sku, now, keep, op, items, done)
}

// An order that was adopted and refunded must not be sold again by what the desk still had to say of the former.
func TestWhatWasDecidedByHandIsNotDoneOnceMore(t *testing.T) {
	k := atCounter(t, ledger.NewMemory(), 0)
	late := slowStore{k.store, make(chan struct{})}
	desk, err := ledger.NewDesk(ledger.DeskOptions{Secret: make([]byte, 16), Log: slog.New(slog.DiscardHandler)}, late, nil)
	if err != nil {
		t.Fatal(err)
	}
	k.api.Ledgers = ledgersOf(config.Default(), k.store, func() *ledger.Desk { return desk })
	k.says(200, nil, "POST", "/stock/1001", `{"set": 1, "limit": 0}`)
	desk.Reserve(0, ledger.Order{SKU: []byte("1001"), Key: []byte("other"), Quantity: 1})
	k.says(200, words("confirmed"), "POST", "/reservations/one/adopt", `{"sku": "1001", "user": "7", "quantity": 1}`)
	elsewhere := atCounter(t, k.store, 0)
	elsewhere.says(200, words("refunded"), "POST", "/reservations/one/refund?sku=1001", "")
	close(late.reached)
	desk.Close(t.Context())
	s, _, err := k.store.Look(t.Context(), "1001")
	if err != nil || s.Sold != 0 {
		t.Errorf("sold %d, %v: the refunded order is back", s.Sold, err)
	}
}
