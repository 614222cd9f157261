package redisstore

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// seller is a reserver over a store.
type seller struct {
	*ledger.Reserver
	store anyStore
	o     ledger.Options
}

// now is the clock of all sellers.
func now() int64 { return int64(time.Since(started)) }

var started = time.Now()

func deskOptions() ledger.Options {
	return ledger.Options{
		Secret:  []byte("sixteen bytes at least"),
		Timeout: 20 * time.Second, // the machine may be busy; outages set their own
		MaxWait: 20 * time.Second,
		Now:     now,
		Log:     slog.New(slog.DiscardHandler),
	}
}

// opened returns a seller that is closed with the test, and settles what is pending.
func opened(t testing.TB, o ledger.Options, s anyStore, source ledger.OrderStatusSource) *seller {
	t.Helper()
	if o.Now == nil {
		o.Now = now
	}
	r, err := ledger.New(o, s, source)
	ledgertest.Check(t, err)
	t.Cleanup(func() { r.Close(context.Background()) })
	return &seller{r, s, o}
}

func (d *seller) buy(user, key string) ledger.Outcome {
	return d.Reserve(now(), protocol.Order{SKU: []byte(ledgertest.SKU), User: []byte(user), Key: []byte(key), Quantity: 1})
}

// wants fails unless the outcome has a code.
func wants(t *testing.T, what string, got ledger.Outcome, want protocol.Code) {
	t.Helper()
	if got.Code != want {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}
