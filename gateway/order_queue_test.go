package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/storetest"
	"sluice/proxy/reject"
	"sluice/queue"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
)

// counted counts the calls about places, each of which is of one SKU.
type counted struct {
	*redisstore.Store
	places atomic.Int64
}

func (c *counted) Positions(ctx context.Context, sku string, serials []string) ([]protocol.Position, error) {
	c.places.Add(1)
	return c.Store.Positions(ctx, sku, serials)
}

// SKUs that clients invent are looked for at the bounded rate of the ledger's look-ups, many in a call.
func TestLook_InventedSKUsAreNoCallsOfTheirOwn(t *testing.T) {
	store := &counted{Store: storetest.Ledger(t)}
	if _, err := store.SetTotal(t.Context(), "1001", 5, 0); err != nil {
		t.Fatal(err)
	}
	r, err := ledger.New(ledger.Options{Secret: protocol.NewSecret(), Hold: time.Hour, Keep: time.Hour,
		Log: slog.New(slog.DiscardHandler)}, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.Background()) })
	q := &orderQueue{queueParts: queueParts{Reserver: func() *ledger.Reserver { return r }}}
	q.deliverer = queue.New(queue.Options{Store: store, MaxInFlight: 1, Timeout: time.Second,
		Keep: time.Hour})
	t.Cleanup(func() { q.deliverer.Close(context.Background()) })
	for i := range 50 {
		if o, reason := q.look(fmt.Sprint("invented", i), "key"); reason != reject.Admitted || o.State != "none" {
			t.Fatalf("%+v, %v", o, reason)
		}
	}
	if n := store.places.Load(); n != 0 {
		t.Errorf("%d calls for 50 SKUs that are not there", n)
	}
	if !r.Track("1001") {
		t.Fatal("the SKU is not known")
	}
	if o, reason := q.look("1001", "key"); reason != reject.Admitted || o.State != "none" || store.places.Load() != 1 {
		t.Errorf("a SKU with a ledger: %+v, %v, %d calls", o, reason, store.places.Load())
	}
}
