package ledger

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// statusInterval is how old the public status of a SKU that is asked for may become: other instances sell too.
const statusInterval = int64(500 * time.Millisecond)

// statusCache is when the numbers of a SKU were read for its public status.
type statusCache struct {
	reading atomic.Bool
	at      atomic.Int64 // ns of the last reading
}

// Status tells from memory what is known of sku at now (ns of Options.Now), and keeps this no much older than half a
// second while it is asked for: one reading for all who ask. ok is false for a SKU that this instance has not met, or
// that has no ledger: invented ones cost nothing.
func (r *Reserver) Status(now int64, sku []byte) (h StockVersion, ok bool) {
	q := r.skus.Find(sku)
	if q == nil {
		return StockVersion{}, false
	}
	s := q.stock.Load()
	if s == nil && !q.tracked.Load() || s != nil && s.absent {
		return StockVersion{}, false
	}
	if now-q.status.at.Load() > statusInterval && q.status.reading.CompareAndSwap(false, true) {
		r.readStatus(q)
	}
	if s == nil {
		return StockVersion{}, false
	}
	return s.StockVersion, true
}

// Knows reports whether this instance knows that sku has a ledger. It reads nothing, and learns nothing.
func (r *Reserver) Knows(sku string) bool {
	q := r.skus.Find([]byte(sku))
	if q == nil {
		return false
	}
	s := q.stock.Load()
	return s != nil && !s.absent || s == nil && q.tracked.Load()
}

// Ended reports whether the ledger of sku has ended. It reads a ledger that this instance has not met yet, and follows
// it from then on. known is false where it cannot be read, or is closed for now: it may have ended before that.
func (r *Reserver) Ended(ctx context.Context, sku string) (ended, known bool) {
	q := r.open([]byte(sku))
	if q == nil {
		return false, false
	}
	if q.stock.Load() == nil && r.meet(ctx, q) != nil {
		return false, false
	}
	s := q.stock.Load()
	closed := s.State == Frozen || s.State == Verifying || s.State == Lost
	return s.State == Ended, !closed
}

// meet reads the numbers of q, or learns that it has no ledger.
func (r *Reserver) meet(ctx context.Context, q *skuQueue) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	now := r.o.Now()
	r.countCall(callFind, 1)
	s, ok, err := r.store.ReadStock(ctx, q.sku)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	r.learn(now, q, &cachedStock{StockVersion: s.StockVersion, absent: !ok, at: now})
	r.dispatch(q)
	return nil
}

// Stuck is a SKU that stays frozen until an operator acts, as the log says; "" = none.
func (r *Reserver) Stuck() string { return r.upkeep.reconciler.Stuck() }

// readStatus reads the numbers of q in the background. reading is set.
func (r *Reserver) readStatus(q *skuQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.removed || r.closed.Load() {
		return // reading stays: the SKU is not asked for here any more
	}
	r.work.Go(func() {
		defer q.status.reading.Store(false)
		ctx, cancel := context.WithTimeout(r.ctx, r.o.Timeout)
		defer cancel()
		r.countCall(callFind, 1)
		s, ok, err := r.store.ReadStock(ctx, q.sku)
		q.status.at.Store(r.o.Now())
		switch { // what else is wrong is said to the next order
		case err == nil && ok:
			r.learnVersion(q, s.StockVersion)
		case errors.Is(err, ErrLost):
			lost := q.newest()
			lost.State = Lost
			r.learnVersion(q, lost)
		}
	})
}

// ReadFirst reads the numbers of sku, and has its reservations looked after where it has a ledger: Status knows it
// then. A SKU that cannot be read stays unknown until a client asks for it.
func (r *batcher) ReadFirst(ctx context.Context, sku string) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	r.countCall(callFind, 1)
	s, ok, err := r.store.ReadStock(ctx, sku)
	if err != nil || !ok || !r.Track(sku) {
		return
	}
	if q := r.skus.Find([]byte(sku)); q != nil {
		r.learnVersion(q, s.StockVersion)
	}
}
