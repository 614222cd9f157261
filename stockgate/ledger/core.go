package ledger

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/octets"
)

// core is what all parts of a reserver share: the store, the SKUs, the orders that are known, and the metrics.
type core struct {
	o       Options
	live    atomic.Pointer[live]
	store   Calls
	start   time.Time // of the clock of maintenance and look-ups
	skus    *octets.Table[skuQueue]
	serials *orderCache // of orders
	users   *orderCache // of orders with a derived serial

	newSKUs    tokenBucket  // SKUs seen for the first time, invented ones too
	refreshes  tokenBucket  // SKUs whose entry of the sold-out cache is old
	gapUntil   atomic.Int64 // ns: until when notifications may have been missed
	faultNames tokenBucket  // SKUs that the log names as they get into trouble
	deadline   atomic.Int64 // Unix ms: of the reservations that are made now

	untaken atomic.Pointer[untaken] // the last call that took no orders; nil = there was none

	closed atomic.Bool
	ctx    context.Context // of calls; ends when Close gives up
	work   sync.WaitGroup  // calls for orders, and those that settle

	metrics
}

// live is what Use changes.
type live struct {
	perUser          int64
	hold, grace      time.Duration
	soldOutMemory    int64 // ns
	reasonOfNotFound string
	mirror           Mirror   // nil = none
	ask              AskOrder // nil = the upstream cannot be asked
}

// queue returns the queue of sku, or nil when there are too many, or too many new ones.
func (r *core) queue(now int64, sku []byte) *skuQueue {
	if q := r.skus.Find(sku); q != nil {
		return q
	}
	if !r.newSKUs.take(now) {
		return nil
	}
	return r.open(sku)
}

// open makes a queue for sku if there is none. It returns nil when there are too many.
func (r *core) open(sku []byte) *skuQueue {
	return r.skus.Add(sku, func(q *skuQueue, sku string, hash uint64) {
		q.sku, q.hash = sku, hash
		q.bySerial, q.unresolved = make(map[string]*pendingOrder), make(map[string]*unresolved)
	})
}

// Track has the reserver look after the reservations of sku, even if it is never asked for that SKU: after a restart,
// say. It reports false when there are too many SKUs.
func (r *core) Track(sku string) bool {
	q := r.open([]byte(sku))
	if q != nil {
		q.tracked.Store(true)
	}
	return q != nil
}

// Preload says that sku has a ledger, as far as the caller knows: the first order for it does not wait for the rate
// of invented SKUs. Its reservations are looked after once there was an order. It reports false when there are too
// many SKUs.
func (r *core) Preload(sku string) bool {
	q := r.open([]byte(sku))
	if q != nil {
		q.preloaded.Store(true)
	}
	return q != nil
}

// ledgers are the SKUs that have a ledger, as far as this instance has seen.
func (r *core) ledgers() (skus []string) {
	for _, q := range r.skus.All() {
		if q.hasLedger() {
			skus = append(skus, q.sku)
		}
	}
	return skus
}

// find looks a serial up.
func (r *core) find(ctx context.Context, q *skuQueue, serial string) (Record, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	r.countCall(callFind, 1)
	return r.store.Find(ctx, q.sku, serial)
}

// nextDeadline is the deadline of a reservation that is made now, in Unix ms. It never goes back. Its last ten bits
// are the instance's mark, so that no two instances give the same serial the same deadline. For what one instance
// does within the second that is left, see skuQueue.wasConfirmed and core.indistinct; it never has a serial in
// two calls at once.
func (r *core) nextDeadline() int64 {
	at := r.o.Clock().Add(r.live.Load().hold).UnixMilli()&^(numMarks-1) + numMarks + r.o.Mark
	for {
		last := r.deadline.Load()
		if at <= last {
			return last
		}
		if r.deadline.CompareAndSwap(last, at) {
			return at
		}
	}
}

// Calls are what a reserver asks of its ledgers: a *Store, or in tests one whose calls are late, lost or
// wrong. Times are Unix milliseconds. Every call may be repeated after an error: what was done by the first is found by
// the second.
type Calls interface {
	Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []Item, codes []Code) (
		StockVersion, error)
	Finish(ctx context.Context, sku string, now, keep int64, op Op, items []Item,
		done []Done) (StockVersion, error)
	Decide(ctx context.Context, sku string, c DecideCall) ([]Done, StockVersion, error)
	Sweep(ctx context.Context, sku string, now, lease int64, limit int) ([]Record, error)
	SweepAll(ctx context.Context, skus []string, now, lease int64) []Swept
	Find(ctx context.Context, sku, serial string) (r Record, ok bool, err error)
	FindAll(ctx context.Context, orders []OrderName) []Found
	ReadStock(ctx context.Context, sku string) (s Stock, ok bool, err error)
	CloseLost(ctx context.Context, sku string, heard StockVersion) (StockVersion, error)
	Backlog(ctx context.Context, skus []string) []error
	Listen(ctx context.Context, hear func(sku string, h StockVersion), missed func())

	InspectAll(ctx context.Context, skus []string) []Inspection

	Pending() []string
	NoteUnknown(sku, serial string)
	Look(ctx context.Context, sku string, now int64) (Result, error)
	Recover(ctx context.Context, sku string, now, keep int64) (Result, error)
}
