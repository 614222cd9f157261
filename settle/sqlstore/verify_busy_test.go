package sqlstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
)

// Two settlers verify while orders are sold, refunded and given back: what is on its way is no difference.
func TestVerify_FindsNothingWhereNothingIsWrong(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, url string) {
		server := redistest.Start(t)
		s := newSite(t, server, url, sqlstore.Stock{})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		settlers := make([]*settle.Settler, 2)
		for i := range settlers {
			settlers[i] = must(settle.New(s.stream, s.store, settle.Options{
				Batch: 7, Ledger: s.ledger, Log: slog.New(slog.DiscardHandler), Givebacks: s.store, Auditor: s.store,
				Verify: 200 * time.Millisecond,
			}))(t)
			running.Go(func() { settlers[i].Run(ctx) })
		}
		skus := []string{"busy-1", "busy-2"}
		for _, sku := range skus {
			s.ledger.set(sku, 1000)
		}
		for i := range 120 {
			for _, sku := range skus {
				s.ledger.buy(sku, i, 1)
				switch serial := fmt.Sprintf("%s-%d", sku, i); i % 4 {
				case 0:
					s.ledger.finish(sku, "refund", serial)
				case 1:
					s.cancels(sku, serial)
				}
			}
			time.Sleep(10 * time.Millisecond) // so that settlers work between the orders
			if i%20 == 0 {
				time.Sleep(300 * time.Millisecond) // a quiet moment, in which it can be compared
			}
		}
		looked := func() bool {
			for _, sku := range skus {
				if c, ok, err := settle.Verify(t.Context(), s.stream, s.store, sku); err != nil || !ok || !c.Equal() {
					return false
				}
			}
			return true
		}
		s.until("the books are equal", looked)
		stop()
		running.Wait()
		for i, one := range settlers {
			if n := one.Stats().Repairs; n != 0 {
				t.Errorf("settler %d has repaired %d times", i, n)
			}
		}
		for _, sku := range skus {
			for _, kind := range sqlstore.Kinds() {
				s.noConflict(sku, kind)
			}
		}
	})
}
