package sqlstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// sizes notes how many records the transactions have.
type sizes struct {
	*sqlstore.Store
	records []int
}

func (s *sizes) Settle(ctx context.Context, b settle.Batch) (settle.Outcome, error) {
	s.records = append(s.records, len(b.Records))
	return s.Store.Settle(ctx, b)
}

// Calls of a busy sale have many orders each: a transaction of 500 such changes would be held in memory. What was sold
// before the sale, one order a call, does not change that.
func TestBatch_IsBoundedByItsOrders(t *testing.T) {
	t.Parallel()
	const sku, before, calls, call, bound = "hot", 40, 100, 64, 2000
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), sqlstore.Stock{})
	s.ledger.set(sku, before+calls*call)
	now := time.Now().UnixMilli()
	keep := now + time.Hour.Milliseconds()
	for n := range before + calls {
		call := call
		if n < before {
			call = 1
		}
		items, codes := make([]ledger.Item, call), make([]ledger.Code, call)
		for i := range items {
			items[i] = ledger.Item{Serial: fmt.Sprintf("%d-%d", n, i), User: "ann", Quantity: 1}
		}
		if _, err := s.ledger.store.Reserve(t.Context(), sku, 0, now, keep, items, codes); err != nil {
			t.Fatal(err)
		}
	}
	db := &sizes{Store: s.store}
	s.settler = must(settle.New(s.stream, db, settle.Options{Batch: 500, Log: slog.New(slog.DiscardHandler)}))(t)
	s.drain(sku)
	all := 0
	for _, n := range db.records {
		if all += n; n > bound {
			t.Errorf("a transaction of %d orders: want at most %d", n, bound)
		}
	}
	want := before + calls*call
	if most := want/(bound/2) + 2; all != want || len(db.records) > most {
		t.Errorf("%d orders in %d transactions: want %d in at most %d", all, len(db.records), want, most)
	}
	s.equal(sku)
}
