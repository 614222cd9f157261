package ledger

import (
	"context"
	"time"

	"sluice/internal/periodic"
)

// finisher tells the ledger what became of orders, in batches of one operation for each SKU. The settlements of one
// serial keep their order.
type finisher struct {
	*core
	batches  *batcher
	sharing  chan struct{} // one element for each call that settles while few settlements are owed
	capacity chan struct{} // one element for each settlement that the store does not have
}

// pendingOp is what the ledger still has to be told of one order.
type pendingOp struct {
	serial string
	op     Op
}

const (
	firstRetry = 25 * time.Millisecond
	lastRetry  = 2 * time.Second

	// No client waits for a settlement. After a call with several of them the next one therefore waits for
	// finishGather, unless there is half a call's worth already: what a call costs Redis is then divided among more
	// orders.
	finishGather = 5 * time.Millisecond
	several      = 8
)

// Settle tells the ledger what became of an order, now or as soon as it can be told: it is repeated until the store has
// it, in the order of the calls for one serial.
//
// It returns at once while there is room for the settlement. It waits for room for at most SettleWait. What finds none,
// what the store did not have when Close gave up, and what comes after Close is written to the log with its serial and
// op, at error level: a reservation stays then, and the resolver finds it.
func (r *finisher) Settle(sku, serial string, op Op) {
	s := pendingOp{serial, op}
	if !r.acquireCapacity() {
		r.dropToLog(sku, s, "too many settlements wait")
		return
	}
	for {
		q := r.open([]byte(sku))
		switch {
		case q == nil:
			<-r.capacity
			r.dropToLog(sku, s, "too many SKUs")
			return
		case r.addPending(q, s):
			return
		case r.closed.Load():
			<-r.capacity
			r.dropToLog(sku, s, "the reserver is closed")
			return
		}
	}
}

// Decided says that the store has op for a serial already, by another way than Settle: nothing is sent, and the
// upstream is not asked about it any more.
func (r *finisher) Decided(sku, serial string, op Op) {
	q := r.skus.Find([]byte(sku))
	if q == nil {
		return
	}
	r.noteSettled(q, serial, op)
	q.mu.Lock()
	defer q.mu.Unlock()
	r.resolved(q, serial)
}

// Delivered says that a queue has settled an order: it is counted as one that Settle has settled.
func (r *finisher) Delivered(sku, serial string, op Op, h StockVersion) {
	q := r.open([]byte(sku))
	if q == nil {
		return
	}
	r.countSettled(q, op)
	r.Decided(sku, serial, op)
	r.batches.learnVersion(q, h)
}

// acquireCapacity waits for room for one settlement.
func (r *finisher) acquireCapacity() bool {
	select {
	case r.capacity <- struct{}{}:
		return true
	default:
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.o.SettleWait)
	defer cancel()
	select {
	case r.capacity <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// addPending queues s, for which there is room. It reports false when the reserver is closed or q was removed.
func (r *finisher) addPending(q *skuQueue, s pendingOp) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.removed || r.closed.Load() {
		return false
	}
	q.pending = append(q.pending, s)
	if !q.settling {
		q.settling = true
		r.work.Go(func() { r.finishPending(q) })
	}
	return true
}

// finishPending tells the store what is pending on q, until nothing is. It is the only goroutine that does so for q.
func (r *finisher) finishPending(q *skuQueue) {
	for b := r.nextPending(q); b != nil; b = r.nextPending(q) {
		h, ok := r.finish(q, b)
		if !ok {
			r.giveUp(q, b)
			return
		}
		left := r.noteResults(q, b, h)
		if len(b.items) >= several && left < r.o.MaxBatch/2 && !r.closed.Load() {
			periodic.Pause(r.ctx, finishGather)
		}
	}
}

// finishBatch is one call's worth of settlements.
type finishBatch struct {
	op    Op
	items []Item
	done  []Done
	began int64 // ns: the last call
}

// nextPending takes settlements of the same op as the first out of what is pending, past others, but not past one
// of the same serial. It returns nil when nothing is pending; the caller's goroutine is then expected to end.
func (r *finisher) nextPending(q *skuQueue) *finishBatch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) == 0 {
		q.settling, q.pending = false, nil
		return nil
	}
	b := &finishBatch{op: q.pending[0].op}
	passed, left, n := make(map[string]bool), q.pending[:0], min(len(q.pending), 4*r.o.MaxBatch)
	for _, s := range q.pending[:n] {
		if s.op != b.op || passed[s.serial] || len(b.items) == r.o.MaxBatch {
			passed[s.serial] = true
			left = append(left, s)
		} else {
			b.items = append(b.items, Item{Serial: s.serial})
		}
	}
	left = append(left, q.pending[n:]...)
	clear(q.pending[len(left):])
	q.pending = left
	b.done = make([]Done, len(b.items))
	return b
}

// finish makes the call until it is answered. It reports false when Close gives up before.
func (r *finisher) finish(q *skuQueue, b *finishBatch) (StockVersion, bool) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		h, err := r.call(q, b)
		fault := err
		if err == nil && b.done[0] == NoLedger {
			fault = LostLedger(q.sku)
		}
		q.mu.Lock()
		r.reportSettling(q, b.began, fault)
		q.mu.Unlock()
		if err == nil {
			return h, true
		}
		r.retries.Inc()
		if !periodic.Pause(r.ctx, wait) {
			return h, false
		}
	}
}

// call makes the call. Each SKU has one under way at most, and calls of many SKUs share round trips. While few
// settlements are owed, it waits for one of the maxSharing others to end, and more orders of its SKU share the next
// one. While many are, that bound would let settlements fall behind orders, which have none.
func (r *finisher) call(q *skuQueue, b *finishBatch) (StockVersion, error) {
	if len(r.capacity) < manyOwed {
		select {
		case r.sharing <- struct{}{}:
			defer func() { <-r.sharing }()
		case <-r.ctx.Done():
			return StockVersion{}, r.ctx.Err()
		}
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.o.Timeout)
	defer cancel()
	now := r.o.Clock()
	b.began = r.o.Now()
	r.countCall(callFinish, len(b.items))
	return r.store.Finish(ctx, q.sku, now.UnixMilli(), now.Add(r.o.Keep).UnixMilli(), b.op, b.items, b.done)
}

// noteResults remembers the results of b, and returns how much is pending yet.
func (r *finisher) noteResults(q *skuQueue, b *finishBatch, h StockVersion) (left int) {
	for i, it := range b.items {
		r.noteResult(q, b.op, it.Serial, b.done[i])
	}
	q.mu.Lock()
	for _, it := range b.items {
		r.resolved(q, it.Serial)
		<-r.capacity
	}
	left = len(q.pending)
	q.mu.Unlock()
	if b.done[0] != NoLedger {
		r.batches.learnVersion(q, h)
	}
	return left
}

// noteResult counts what one settlement came to, and logs what an operator must look at.
func (r *finisher) noteResult(q *skuQueue, op Op, serial string, done Done) {
	switch done {
	case Changed:
		r.countSettled(q, op)
		fallthrough
	case Already:
		r.noteSettled(q, serial, op)
		return
	case NoLedger: // finish has logged it, for all of them at once
		return
	case WasRefunded:
		r.o.Log.Warn("an order that was given back is confirmed; if the upstream has it still, it must cancel it", "sku",
			q.sku, "serial", serial)
		return
	}
	r.contradictions.WithLabelValues(r.label(q.sku)).Inc()
	r.o.Log.Error("reservation does not agree with the upstream", "sku", q.sku, "serial", serial, "op", string(op),
		"found", contradiction(done))
}

// contradiction says what was found, for the log.
func contradiction(done Done) string {
	switch done {
	case WasReleased:
		return "released before: the upstream must cancel the order"
	case WasSold:
		return "sold: use refund"
	case NotFound:
		return "no such reservation"
	}
	return "unknown"
}

// giveUp writes b and what is pending to the log.
func (r *finisher) giveUp(q *skuQueue, b *finishBatch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []pendingOp
	for _, it := range b.items {
		all = append(all, pendingOp{it.Serial, b.op})
	}
	for _, s := range append(all, q.pending...) {
		<-r.capacity
		r.dropToLog(q.sku, s, "the reserver is closed")
	}
	q.pending, q.settling = nil, false
}

// dropToLog writes a settlement to the log, so that it can be done by hand.
func (r *finisher) dropToLog(sku string, s pendingOp, why string) {
	r.dropped.Inc()
	r.o.Log.Error("settlement was not kept", "sku", sku, "serial", s.serial, "op", string(s.op), "why", why)
}
