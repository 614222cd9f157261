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

// returning is a ledger of which the right server is the master again by the time that it is to be closed.
type returning struct {
	*testLedger
	turn func()
}

func (r returning) Outrun(ctx context.Context, sku string, settled settle.Position) error {
	r.turn()
	return r.testLedger.Outrun(ctx, sku, settled)
}

// A settler has read an older ledger. By the time that it closes the SKU, the right server is the master again.
func TestSettle_RightLedgerIsNotClosed(t *testing.T) {
	t.Parallel()
	const sku = "older"
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), sqlstore.Stock{})
	s.ledger.set(sku, 50)
	s.ledger.buy(sku, 0, 2)
	older := s.dump(sku)
	s.ledger.freeze(sku)
	s.ledger.open(sku)
	s.ledger.buy(sku, 2, 2)
	s.drain(sku)
	right := s.dump(sku)
	older()
	worker := must(settle.New(s.stream, s.store, settle.Options{
		Batch: 7, Ledger: returning{s.ledger, right}, Log: slog.New(slog.DiscardHandler),
	}))(t)
	_ = worker.Drain(t.Context(), sku)
	s.ledger.forget()
	if state := s.ledger.state(sku); state != "on" {
		t.Errorf("the SKU is %s, and has lost nothing", state)
	}
}
