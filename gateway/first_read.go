package gateway

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	firstReadTimeout = 500 * time.Millisecond // of all together: a start is not held up for longer
	mostFirstRead    = 1000                   // SKUs
	firstReadsAtOnce = 16
)

// readFirst reads what is left of SKUs that have a ledger, those of sales first, as soon as the ledger is open, and
// before a gate that starts is ready: a page that asks right after a start is told. It does nothing while the ledger is
// not open.
func (o *orderLedger) readFirst(ctx context.Context) {
	d := o.Reserver()
	if d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, firstReadTimeout)
	defer cancel()
	others, err := o.Store.SKUs(ctx, mostFirstRead)
	if err != nil {
		return // what is wrong with Redis is said elsewhere
	}
	seen := map[string]bool{}
	skus := slices.DeleteFunc(append(o.now.Load().SKUsOnSale(), others...), func(sku string) bool {
		again := seen[sku]
		seen[sku] = true
		return again
	})
	for some := range slices.Chunk(skus[:min(len(skus), mostFirstRead)], firstReadsAtOnce) {
		var readers sync.WaitGroup
		for _, sku := range some {
			readers.Go(func() { d.ReadFirst(ctx, sku) })
		}
		readers.Wait()
	}
}
