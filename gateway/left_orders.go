package gateway

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"sluice/stockgate/ledger"
)

// leftOrders are orders that wait in the ledger although no route of this instance has orders wait. An earlier
// configuration has accepted them, or another instance that runs with it. It is safe for concurrent use.
type leftOrders struct {
	queues    func() bool   // a route has orders wait: this instance delivers them, or is about to
	delivered atomic.Bool   // this instance delivers orders that wait: none are sought
	waiting   atomic.Bool   // some were found
	found     chan struct{} // holds one
	sought    time.Time     // by find alone
}

// seekLeft is how often an instance that delivers no orders looks for some that wait: others may accept them until the
// last instance has another configuration.
const seekLeft = time.Minute

// find looks for such orders among SKUs, of which the ledger has just made a list.
func (l *leftOrders) find(ctx context.Context, store *ledger.Store, skus []string, log *slog.Logger) {
	if l.queues() || l.delivered.Load() || time.Since(l.sought) < seekLeft {
		return
	}
	for some := range slices.Chunk(skus, ledger.MaxTogether) {
		depths, err := store.Depths(ctx, some)
		if err != nil {
			return // it is tried again when the SKUs are listed again
		}
		at := slices.IndexFunc(depths, ledger.Depth.Active)
		if at < 0 {
			continue
		}
		log.Warn("orders wait although no route here has delivery = \"queue\"; they are delivered at the pace of [queue]",
			"sku", some[at], "waiting", depths[at].Waiting, "delivering", depths[at].Leased, "unknown", depths[at].Asking)
		l.waiting.Store(true)
		select {
		case l.found <- struct{}{}:
		default:
		}
		break
	}
	l.sought = time.Now()
}
