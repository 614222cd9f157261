package ledger

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"sluice/internal/octets"
)

// Reserver reserves units for the orders of many clients at once. It is safe for concurrent use. See the package's
// documentation for how it works. Every goroutine that works for a SKU ends with its work; Close waits for all of
// them.
//
// The reserver itself answers orders. The parts that it embeds or holds have a file each.
type Reserver struct {
	*deriver
	core
	batcher
	finisher
	mirrors  mirrorWriter
	resolver resolver
	upkeep   maintenance
	lookups  lookups // of orders for SKUs that are sold out
	states   lookups // of orders whose state a client asks for
	searches lookups // of such orders whose SKU the client does not name

	cancel     context.CancelFunc // ends all calls
	stop       context.CancelFunc // ends the background
	background sync.WaitGroup     // maintenance, notifications
}

const (
	newSKUDepth     = 1000
	newSKUInterval  = int64(500 * time.Microsecond)
	refreshDepth    = 100
	refreshInterval = int64(2 * time.Millisecond)

	// A look-up costs several times a rejection from memory, so that a crowd is looked up in part.
	lookupSize     = 16                          // orders in one call
	userLookups    = 2                           // of them, those of users without a key
	lookupInterval = int64(5 * time.Millisecond) // for which an order waits at most until its call begins
	stateSize      = 512
	stateInterval  = int64(10 * time.Millisecond)
	searchInterval = 10 * stateInterval // a search asks all ledgers: it takes no call from those who name the SKU

	maxSharing = 8   // calls that settle at once while fewer settlements than manyOwed are owed
	manyOwed   = 512 // of settlements
)

// New returns a reserver over store that calls ask, which may be nil, about orders whose outcome is unknown.
func New(o Options, store Calls, ask AskOrder) (*Reserver, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	size := max(cacheWays, 1<<bits.Len(uint(o.MaxKnown-1)))
	r := &Reserver{deriver: newDeriver(o.Secret), core: core{
		o: o, store: store,
		start:      time.Now(),
		skus:       octets.NewTable[skuQueue](o.MaxSKUs),
		serials:    newOrderCache(size, func(k *knownOrder) string { return k.Serial }),
		users:      newOrderCache(size, func(k *knownOrder) string { return k.User }),
		newSKUs:    tokenBucket{interval: newSKUInterval, depth: newSKUDepth},
		refreshes:  tokenBucket{interval: refreshInterval, depth: refreshDepth},
		faultNames: tokenBucket{interval: faultNameInterval, depth: faultNameDepth},
	}}
	r.metrics.open()
	r.Use(o, ask)
	r.connect()
	r.lookups.open(&r.core, lookupSize, lookupInterval)
	r.states.open(&r.core, stateSize, stateInterval)
	r.searches.open(&r.core, stateSize, searchInterval)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(r.ctx)
	r.stop = stop
	r.startBackground(ctx)
	return r, nil
}

// Use goes by PerUser, Hold, OnNotFound, Grace, SoldOutMemory and Mirror of o, and by ask, from now on; what metrics
// have Named stays named. All else stays. An order keeps the deadline that it was given.
func (r *Reserver) Use(o Options, ask AskOrder) {
	o.Secret, o.Mark = r.o.Secret, r.o.Mark
	o, err := o.checked()
	if err != nil {
		panic("BUG: " + err.Error())
	}
	r.name(o.Named)
	r.live.Store(&live{perUser: o.PerUser, hold: o.Hold, grace: o.Grace, soldOutMemory: int64(o.SoldOutMemory),
		reasonOfNotFound: o.OnNotFound, mirror: o.Mirror, ask: ask})
}

// connect makes the parts of r known to each other.
func (r *Reserver) connect() {
	r.mirrors.core = &r.core
	r.batcher = batcher{&r.core, &r.mirrors}
	r.finisher = finisher{
		core: &r.core, batches: &r.batcher,
		sharing: make(chan struct{}, maxSharing), capacity: make(chan struct{}, r.o.MaxSettling),
	}
	r.resolver = resolver{&r.core, &r.finisher}
	r.upkeep = maintenance{core: &r.core, batches: &r.batcher, resolver: &r.resolver}
}

// startBackground starts what works without orders, until ctx ends.
func (r *Reserver) startBackground(ctx context.Context) {
	r.upkeep.audits = newAuditor(&r.core)
	r.upkeep.reconciler = newReconciler(&r.core, r.Unknown, r.Learn)
	r.background.Go(func() { r.upkeep.maintain(ctx) })
	r.background.Go(func() { r.store.Listen(ctx, r.Learn, r.onGap) })
}

// open makes x ready. Its bucket holds what one second brings.
func (x *lookups) open(r *core, size int, interval int64) {
	x.core, x.size = r, size
	x.rate.interval, x.rate.depth = interval, int64(time.Second)/interval
}

// Reserve asks for the units of one order. It waits for at most MaxWait, and then for the call under way and its own,
// of at most Tries × Timeout each; for a SKU that is sold out, for a look-up. Only an order that hears Held may be
// forwarded, and once. now is of Options.Now.
func (r *Reserver) Reserve(now int64, o Order) Outcome {
	if !valid(&o) { // the store would reject all orders of its call
		return Outcome{Code: Invalid}
	}
	if out, sold := r.Cached(now, o); sold {
		return out
	}
	return r.answer(now, o, (*Reserver).try)
}

// maxStale is how often an order is answered anew because the ledger was in another sale or epoch than was known.
const maxStale = 3

// answer answers o by the sale of the SKU that is known. If that was an earlier one than the ledger's, the store has
// done nothing and told the right one, by which the order is answered then.
func (r *Reserver) answer(now int64, o Order, try orderAttempt) Outcome {
	for range maxStale {
		if out := r.answerInSale(now, o, try); out.Code != StaleEpoch {
			return out
		}
		now = r.o.Now()
	}
	if q := r.skus.Find(o.SKU); q != nil {
		r.countAnswer(q, Overloaded, 1)
	}
	return Outcome{Code: Overloaded}
}

// answerInSale finds the serials that o may have, and lets try ask for one after the other.
func (r *Reserver) answerInSale(now int64, o Order, try orderAttempt) Outcome {
	switch {
	case len(o.Key) > 0:
		return try(r, now, o, &knownOrder{Item: Item{Serial: string(o.Key)}})
	case r.namedByUser(&o):
		return r.answerUser(now, o, try)
	}
	return try(r, now, o, &knownOrder{Item: Item{Serial: unique()}})
}

// orderAttempt asks for one order under the serial of k: for its units (try), or whether it has won (lookUpEarlier).
type orderAttempt func(r *Reserver, now int64, o Order, k *knownOrder) Outcome

// pending is o, known as k.
func (k *knownOrder) pending(now int64, o *Order) *pendingOrder {
	k.User, k.Quantity, k.Cart = string(o.User), o.Quantity, o.Cart
	return &pendingOrder{knownOrder: k, request: o.Request, since: now, out: make(chan Outcome, 1)}
}

// try asks for the units of one order.
func (r *Reserver) try(now int64, o Order, k *knownOrder) Outcome {
	p := k.pending(now, &o)
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
		if out.cached && r.mayRepeat(&o, out.State) {
			return r.verify(now, q, p, &o, out)
		}
		return out
	}
}

// Close rejects new orders, answers those that wait, and settles what is pending until ctx ends; what the store does
// not have by then is written to the log. It returns when every goroutine of the reserver has ended.
func (r *Reserver) Close(ctx context.Context) {
	r.stop()
	r.background.Wait()
	r.closed.Store(true)
	r.barrier()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		r.work.Wait()
		r.mirrors.ended.Store(true)
		r.barrier()
		r.mirrors.writes.Wait()
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
	for _, x := range []*lookups{&r.lookups, &r.states, &r.searches} {
		x.mu.Lock()
		//lint:ignore SA2001 an empty critical section waits for those before it
		x.mu.Unlock()
	}
	for _, q := range r.skus.All() {
		q.mu.Lock()
		//lint:ignore SA2001 an empty critical section waits for those before it
		q.mu.Unlock()
	}
}

// Cached answers from memory alone, at once, and writes nothing: what cannot be reserved at now (ns of Options.Now)
// by the newest reply of the store. It reports false when the order is to be passed on: to LookUp if the Outcome says
// so; else to Reserve, since units may be free or the answer is old.
//
// An order with a key or a user may repeat one that has won. It is looked up while there is capacity, in batches, and
// past that hears Undecided or an Unverified SoldOut, unless this instance has seen it win.
func (r *Reserver) Cached(now int64, o Order) (Outcome, bool) {
	q := r.skus.Find(o.SKU)
	if q == nil {
		return Outcome{}, false
	}
	s := q.stock.Load()
	code, sold := q.unavailable(now, s, o.Quantity)
	switch {
	case !sold, r.refreshDue(now, q, s, o.Quantity):
		return Outcome{}, false
	}
	out := s.outcome(now, code)
	switch {
	case s.unusable(), !r.mayRepeat(&o, out.State):
		return out, true
	case r.lookups.hasRoom(mostLookups(&o)):
		return Outcome{LookUp: true}, false
	}
	return r.unverified(now, q, &o, out), true
}

// unverified is the answer to an order that was not looked up, where out is what the sold-out cache says.
func (r *Reserver) unverified(now int64, q *skuQueue, o *Order, out Outcome) Outcome {
	if k := r.known(now, q, o); k != nil {
		return k.replay(o)
	}
	out.Unverified = out.Code == SoldOut
	return out
}

// Learn takes in a version of the stock that came by another way than a reply, so that units that came back can be
// bought at once.
func (r *Reserver) Learn(sku string, h StockVersion) {
	if q := r.skus.Find([]byte(sku)); q != nil {
		r.learnVersion(q, h)
	}
}

// Last is the newest version of the stock of sku that this instance has heard of. It reads nothing.
func (r *Reserver) Last(sku string) (h StockVersion, ok bool) {
	if q := r.skus.Find([]byte(sku)); q != nil {
		if s := q.stock.Load(); s != nil && s.open() {
			return s.StockVersion, true
		}
	}
	return h, false
}
