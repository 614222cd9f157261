package sqlstore_test

import (
	"context"
	"errors"
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

// settledLater is a site whose SKU is settled in a later epoch than that of the ledger which older restores.
func settledLater(t *testing.T) (s *site, sku string, older func()) {
	t.Helper()
	s, sku = newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), sqlstore.Stock{}), "older"
	s.ledger.set(sku, 50)
	s.ledger.buy(sku, 0, 2)
	older = s.dump(sku)
	s.ledger.freeze(sku)
	s.ledger.open(sku)
	s.ledger.buy(sku, 2, 2)
	s.drain(sku)
	return s, sku, older
}

// A settler has read an older ledger. By the time that it closes the SKU, the right server is the master again.
func TestSettle_RightLedgerIsNotClosed(t *testing.T) {
	t.Parallel()
	s, sku, older := settledLater(t)
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

// A settler has closed a SKU whose ledger is older than the database. sluice stock recover SKU --from settle waits
// while an instance or a settler has something left to tell: this settler has nothing, however often it looks.
func TestSettle_OlderLedgerCanBeRecoveredFromTheDatabase(t *testing.T) {
	t.Parallel()
	s, sku, older := settledLater(t)
	older()
	for range 5 {
		if err := s.settler.Drain(t.Context(), sku); !errors.Is(err, settle.ErrBehind) {
			t.Fatalf("an older epoch: %v", err)
		}
	}
	s.ledger.forget()
	stock, _, err := s.ledger.store.ReadStock(t.Context(), sku)
	if err != nil || stock.State != "frozen" || stock.Untold != 0 {
		t.Errorf("%s, %d have something to tell, %v: want frozen, 0", stock.State, stock.Untold, err)
	}
}
