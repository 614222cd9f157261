package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
)

func TestLedger_UnknownSKUHasTheLedgersListedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.Ledger(t)
		r, err := ledger.New(ledger.Options{Secret: ledger.NewSecret(), Hold: time.Hour, Keep: time.Hour,
			Log: slog.New(slog.DiscardHandler)}, store, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close(context.Background())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &orderLedger{Store: store, log: slog.New(slog.DiscardHandler), unknown: make(chan struct{}, 1),
			left: leftOrders{queues: func() bool { return false }}}
		o.reserver.Store(r)
		sku, made := "", 0
		at := func(seconds float64, listed bool) { // since the last call
			t.Helper()
			if sku == "" || r.Knows(sku) { // the next list shows it
				made++
				sku = fmt.Sprint("sku ", made)
				testkit.Must[ledger.Stock](t)(store.SetTotal(ctx, sku, 1, 0))
			}
			time.Sleep(time.Duration(seconds * float64(time.Second))) // of synctest
			synctest.Wait()
			if r.Knows(sku) != listed {
				t.Errorf("after list %d: listed %t, want %t", made-1, !listed, listed)
			}
		}
		at(0, false)
		go o.watch(ctx)
		synctest.Wait() // the first list may come before "at" could ask
		if !r.Knows(sku) {
			t.Error("the first list does not show it")
		}
		at(4.5, false)
		at(1, true) // at 5 s, without a question
		o.NoteUnknown()
		at(0, false) // 0.5 s behind the last one
		at(0.6, true)
		o.NoteUnknown()
		o.NoteUnknown()
		at(1, true)
		at(4.5, false)
		at(1, true)
	})
}

// lostLedgers answers each order as where the ledger of the SKU is gone.
type lostLedgers struct{ *ledger.Store }

func (lostLedgers) Reserve(_ context.Context, _ string, _, _, _ int64, items []ledger.Item,
	codes []ledger.Code) (ledger.StockVersion, error) {
	for i := range items {
		codes[i] = ledger.NotOnSale
	}
	return ledger.StockVersion{Epoch: 1, Ver: 1, State: ledger.Lost}, nil
}

func TestLedger_LostOneHasTheLedgersListedSoon(t *testing.T) {
	r, err := ledger.New(ledger.Options{Secret: ledger.NewSecret(), Hold: time.Hour, Keep: time.Hour,
		Log: slog.New(slog.DiscardHandler)}, lostLedgers{storetest.Ledger(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	o := &orderLedger{log: slog.New(slog.DiscardHandler), unknown: make(chan struct{}, 1)}
	got := o.take(r, 0, ledger.Order{SKU: []byte("1001"), User: []byte("ann"), Quantity: 1})
	if got.Reason != reject.StockError || len(o.unknown) != 1 {
		t.Errorf("%v, %d questions", got.Reason, len(o.unknown))
	}
}
