package orders

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/storetest"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
)

// listed counts the lists of all SKUs.
type listed struct {
	*redisstore.Store
	n atomic.Int64
}

func (l *listed) SKUs(ctx context.Context, most int) ([]string, error) {
	l.n.Add(1)
	return l.Store.SKUs(ctx, most)
}

func TestLedger_UnknownSKUHasTheLedgersListedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &listed{Store: storetest.Ledger(t)}
		r, err := ledger.New(ledger.Options{Secret: protocol.NewSecret(), Hold: time.Hour, Keep: time.Hour,
			Log: slog.New(slog.DiscardHandler)}, store, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close(context.Background())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &Ledger{Store: store, redis: store.Store, log: slog.New(slog.DiscardHandler), unknown: make(chan struct{}, 1)}
		o.reserver.Store(r)
		go o.watch(ctx)
		at := func(seconds float64, lists int64) {
			t.Helper()
			time.Sleep(time.Duration(seconds * float64(time.Second)))
			synctest.Wait()
			if n := store.n.Load(); n != lists {
				t.Errorf("%d lists, want %d", n, lists)
			}
		}
		at(0, 1)
		at(4.5, 1)
		at(1, 2) // at 5 s, without a question
		o.NoteUnknown()
		at(0, 2) // 0.5 s behind the last one
		at(0.6, 3)
		o.NoteUnknown()
		o.NoteUnknown()
		at(1, 4)
		at(4.5, 4)
		at(1, 5)
	})
}
