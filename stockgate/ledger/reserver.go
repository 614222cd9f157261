package ledger

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"sluice/stockgate/ledger/audit"
	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/protocol"
)

// Reserver reserves units for the orders of many clients at once. It is safe for concurrent use. See the package's
// documentation for how it works. Every goroutine that works for a SKU ends with its work; Close waits for all of
// them.
//
// It has more than 25 methods because the steps of the way of an order share the queue of a SKU and its mutex. Each
// step is a file of its own.
type Reserver struct {
	*deriver
	o       Options
	store   protocol.Store
	source  OrderStatusSource // nil = the upstream cannot be asked
	memory  int64             // ns of SoldOutMemory
	start   time.Time         // of the clock of maintenance and look-ups
	skus    *skuIndex
	serials *orderCache // of orders
	users   *orderCache // of orders with a derived serial
	lookups lookups     // of orders for SKUs that are sold out
	states  lookups     // of orders whose state a client asks for

	newSKUs    tokenBucket   // SKUs seen for the first time, invented ones too
	refreshes  tokenBucket   // SKUs whose sold-out cache is old
	faultNames tokenBucket   // SKUs that the log names as they get into trouble
	settling   chan struct{} // one element for each call that settles
	capacity   chan struct{} // one element for each settlement that the store does not have
	suspects   unresolvedQueues
	audits     *audit.Auditor       // nil where the store cannot be inspected
	reconciler *failover.Reconciler // nil where the store forgets nothing

	deadline atomic.Int64 // Unix ms: of the reservations that are made now
	gapUntil atomic.Int64 // ns: until when notifications may have been missed

	closed      atomic.Bool
	ctx         context.Context // of calls; ends when Close gives up
	cancel      context.CancelFunc
	stop        context.CancelFunc // ends maintenance
	maintenance sync.WaitGroup     // sweeps, resolves, audits, hears notifications
	work        sync.WaitGroup     // calls for orders, and those that settle
	mirrors     sync.WaitGroup     // writes of the mirror
	mirrored    atomic.Bool        // no more of them begin

	metrics
}

const (
	newSKUDepth     = 1000
	newSKUInterval  = int64(500 * time.Microsecond)
	refreshDepth    = 100
	refreshInterval = int64(2 * time.Millisecond)

	lookupSize     = 256 // orders in one call
	lookupInterval = int64(100 * time.Millisecond)
	stateSize      = 512
	stateInterval  = int64(10 * time.Millisecond)

	maxSettling = 32 // calls that settle, of however many SKUs: more would take all connections from orders
)

// New returns a reserver over store that asks source, which may be nil, about orders whose outcome is unknown.
func New(o Options, store protocol.Store, source OrderStatusSource) (*Reserver, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	size := max(cacheWays, 1<<bits.Len(uint(o.MaxKnown-1)))
	r := &Reserver{
		deriver: newDeriver(o.Secret),
		o:       o, store: store, source: source,
		memory:     int64(o.SoldOutMemory),
		start:      time.Now(),
		skus:       newSKUIndex(o.MaxSKUs),
		serials:    newOrderCache(size, func(k *knownOrder) string { return k.serial }),
		users:      newOrderCache(size, func(k *knownOrder) string { return k.user }),
		newSKUs:    tokenBucket{interval: newSKUInterval, depth: newSKUDepth},
		refreshes:  tokenBucket{interval: refreshInterval, depth: refreshDepth},
		faultNames: tokenBucket{interval: faultNameInterval, depth: faultNameDepth},
		settling:   make(chan struct{}, maxSettling),
		capacity:   make(chan struct{}, o.MaxSettling),
	}
	r.lookups.open(r, lookupSize, lookupInterval)
	r.states.open(r, stateSize, stateInterval)
	r.metrics.open(o.Named)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(r.ctx)
	r.stop = stop
	if s, ok := store.(protocol.Inspectable); ok {
		r.audits = audit.NewAuditor(audit.AuditorOptions{
			SKUs: r.ledgers, Timeout: o.Timeout, Named: o.MetricSKUs, Log: o.Log,
			Observe: func(skus int) { r.calls.observe(callAudit, skus) },
		}, s)
		r.maintenance.Go(func() { r.audits.Run(ctx) })
	}
	if s, ok := store.(failover.Recoverable); ok {
		r.reconciler = failover.NewReconciler(
			failover.ReconcilerOptions{Keep: o.Keep, Unknown: r.Unknown, Learn: r.Learn, Log: o.Log},
			s,
		)
	}
	r.maintenance.Go(func() { r.maintain(ctx) })
	if n, ok := store.(protocol.Notifier); ok {
		r.maintenance.Go(func() { n.Listen(ctx, r.Learn, r.onGap) })
	}
	return r, nil
}

// open makes x ready. Its bucket holds what one second brings.
func (x *lookups) open(r *Reserver, size int, interval int64) {
	x.size, x.call, x.work, x.start, x.closed = size, r.lookUp, &r.work, r.start, &r.closed
	x.rate.interval, x.rate.depth = interval, int64(time.Second)/interval
}

// Reserve asks for the units of one order. It waits for at most MaxWait, and then for the call under way and its own,
// of at most Tries × Timeout each; for a SKU that is sold out, for a look-up. Only an order that hears Held may be
// forwarded, and once. now is of Options.Now.
func (r *Reserver) Reserve(now int64, o Order) Outcome {
	if o.Quantity < 1 || o.Quantity > protocol.MaxQuantity || len(o.Key) > 0 && !protocol.ValidSerial(o.Key) {
		return Outcome{Code: Invalid}
	}
	if out, sold := r.Cached(now, o); sold {
		return out
	}
	return r.answer(now, o, (*Reserver).try)
}

// answer finds the serials that o may have, and lets try ask for one after the other.
func (r *Reserver) answer(now int64, o Order, try orderAttempt) Outcome {
	switch {
	case len(o.Key) > 0:
		return try(r, now, o, &knownOrder{serial: string(o.Key)})
	case len(o.User) > 0:
		return r.answerUser(now, o, try)
	}
	return try(r, now, o, &knownOrder{serial: unique()})
}

// orderAttempt asks for one order under the serial of k: for its units (try), or whether it has won (lookUpEarlier).
type orderAttempt func(r *Reserver, now int64, o Order, k *knownOrder) Outcome

// pending is the order of k.
func (o *Order) pending(now int64, k *knownOrder) *pendingOrder {
	k.user, k.quantity = string(o.User), o.Quantity
	p := &pendingOrder{knownOrder: k, since: now, out: make(chan Outcome, 1)}
	p.item = protocol.Item{Serial: k.serial, User: k.user, Quantity: k.quantity}
	return p
}

// try asks for the units of one order.
func (r *Reserver) try(now int64, o Order, k *knownOrder) Outcome {
	p := o.pending(now, k)
	for {
		q := r.queue(now, o.SKU)
		if q == nil {
			return Outcome{Code: Overloaded}
		}
		k.queue = q
		if !r.enqueue(now, q, p) {
			continue // it was removed just now
		}
		out := <-p.out
		if out.cached && o.mayRepeat(out.State) {
			return r.verify(now, q, p, &o, out)
		}
		return out
	}
}

// queue returns the queue of sku, or nil when there are too many, or too many new ones.
func (r *Reserver) queue(now int64, sku []byte) *skuQueue {
	if q := r.skus.find(sku); q != nil {
		return q
	}
	if !r.newSKUs.take(now) {
		return nil
	}
	return r.open(sku)
}

// open makes a queue for sku if there is none. It returns nil when there are too many.
func (r *Reserver) open(sku []byte) *skuQueue {
	return r.skus.add(sku, func(sku string) *skuQueue {
		return &skuQueue{
			sku: sku, events: r.eventsOf(sku),
			bySerial: make(map[string]*pendingOrder), unresolved: make(map[string]*unresolved),
		}
	})
}

// Track has the reserver look after the reservations of sku, even if it is never asked for that SKU: after a restart,
// say. It reports false when there are too many SKUs.
func (r *Reserver) Track(sku string) bool {
	q := r.open([]byte(sku))
	if q != nil {
		q.tracked.Store(true)
	}
	return q != nil
}

// Preload says that sku has a ledger, as far as the caller knows: the first order for it does not wait for the rate
// of invented SKUs. Its reservations are looked after once there was an order. It reports false when there are too
// many SKUs.
func (r *Reserver) Preload(sku string) bool {
	q := r.open([]byte(sku))
	if q != nil {
		q.preloaded.Store(true)
	}
	return q != nil
}

// Close rejects new orders, answers those that wait, and settles what is pending until ctx ends; what the store does
// not have by then is written to the log. It returns when every goroutine of the reserver has ended.
func (r *Reserver) Close(ctx context.Context) {
	r.stop()
	r.maintenance.Wait()
	r.closed.Store(true)
	r.barrier()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		r.work.Wait()
		r.mirrored.Store(true)
		r.barrier()
		r.mirrors.Wait()
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
	r.cancel()
	<-settled
}

// barrier returns when every goroutine that did not see that the reserver is closed has started what it starts.
func (r *Reserver) barrier() {
	for _, x := range []*lookups{&r.lookups, &r.states} {
		x.mu.Lock()
		//lint:ignore SA2001 an empty critical section waits for those before it
		x.mu.Unlock()
	}
	for _, q := range r.skus.each() {
		q.mu.Lock()
		//lint:ignore SA2001 an empty critical section waits for those before it
		q.mu.Unlock()
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
