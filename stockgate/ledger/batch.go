package ledger

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"sluice/internal/periodic"
	"sluice/stockgate/redisconn"
)

// batcher sends the orders of each SKU in batches: it keeps the queues, makes the calls and answers the orders.
type batcher struct {
	*core
	mirror *mirrorWriter
}

// batch is the orders of one call, each serial once.
type batch struct {
	orders    []*pendingOrder
	items     []Item
	codes     []Code
	confirmed []bool // a client heard before that the serial is reserved, until this very deadline
	units     int64  // of all items
	bytes     int    // of their requests
	// Unix ms; with the serial it tells this batch's reservation from any other, where confirmed is false.
	deadline  int64
	seen      StockVersion // the newest when the orders were taken out
	refreshes bool         // the first order refreshes the cache
	sent      bool         // the store may have it
	adrift    bool         // a sending that was not answered may arrive after one that was
	stock     *cachedStock // what the reply said; nil = there was none
	began     int64        // ns: the last sending
	err       error        // of it, where there was no reply
}

// runBatches sends the orders of q and answers them, until none is left that may be sent.
func (r *batcher) runBatches(q *skuQueue) {
	for {
		b := r.nextBatch(q)
		if b == nil {
			return
		}
		r.send(q, b)
		r.finishBatch(q, b)
	}
}

// nextBatch takes out the orders that leave now, or returns nil. Orders that are here already, but have not come as
// far as their queue, come along: the goroutines that can run are let run first, which takes no time where there are
// none.
func (r *batcher) nextBatch(q *skuQueue) *batch {
	runtime.Gosched()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls-- // this one is none before it has an order: while nothing is known, only the first call may leave
	if q.calls > 0 && len(q.orders) < r.o.MaxBatch {
		return nil
	}
	b := r.takeBatch(r.o.Now(), q)
	if len(b.items) == 0 {
		return nil
	}
	q.calls++
	q.trying += b.units
	r.dispatch(q)
	return b
}

// maxBatchBytes are so many bytes of requests that no other one joins a batch: a call must not take longer than it may.
const maxBatchBytes = 2 << 20

// takeBatch takes out the order that refreshes the cache, then those for which the newest version leaves units. mu is
// held.
func (r *batcher) takeBatch(now int64, q *skuQueue) *batch {
	b := &batch{seen: q.newest()}
	room := q.room()
	if p := q.refresher; p != nil {
		q.refresher = nil
		b.refreshes = r.admit(now, q, b, p)
		q.refreshing.Store(b.refreshes)
	}
	for len(q.orders) > 0 && len(b.items) < r.o.MaxBatch && b.bytes < maxBatchBytes &&
		q.orders[0].Quantity <= room {
		p := q.orders[0]
		q.orders[0], q.orders = nil, q.orders[1:]
		if r.admit(now, q, b, p) {
			room -= p.Quantity
		}
	}
	return b
}

// admit puts p into b, unless it waited for too long, or its serial is of another sale of the SKU.
func (r *batcher) admit(now int64, q *skuQueue, b *batch, p *pendingOrder) bool {
	if now-p.since > int64(r.o.MaxWait) {
		q.complete(p, Outcome{Code: Overloaded})
		r.countAnswer(q, Overloaded, 1+len(p.duplicates))
		return false
	}
	if p.derived && p.sale != b.seen.Sale {
		q.complete(p, Outcome{Code: StaleEpoch})
		return false
	}
	b.orders = append(b.orders, p)
	item := p.Item
	item.Request = p.request
	b.items = append(b.items, item)
	b.codes = append(b.codes, Unsure)
	b.units += p.Quantity
	b.bytes += len(p.request)
	return true
}

// resendAfter is the pause before a batch is sent again; it doubles.
const resendAfter = 5 * time.Millisecond

// send fills the codes of b. The result of a sending that was not answered is unknown, so it is sent again with the
// same serials and the same deadline, until one is answered, or Tries or Resend are spent: then the codes are Unsure.
// A store that hangs keeps orders waiting for no more than one sending; a connection that broke is tried again.
func (r *batcher) send(q *skuQueue, b *batch) {
	r.stamp(q, b)
	epoch, unsure, stale, first := b.seen.Epoch, false, false, r.o.Now()
	for try := 0; try < r.o.Tries; try++ {
		if unsure && (r.o.Now()-first >= int64(r.o.Resend) || !periodic.Pause(r.ctx, resendAfter<<try)) {
			break
		}
		b.began = r.o.Now()
		h, err := r.reserve(q, b, epoch)
		few := errors.Is(err, ErrFewReplicas)
		b.sent = b.sent || err == nil || !redisconn.Unsent(err)
		if err != nil && !few {
			unsure, b.err = true, err
			b.adrift = b.sent
			continue
		}
		// Nothing was done: decide again once, by the epoch that it has. The serials of another sale are others.
		if b.codes[0] == StaleEpoch && !stale && h.Sale == b.seen.Sale {
			epoch, stale, b.err = h.Epoch, true, nil
			try--
			continue
		}
		b.stock, b.err = &cachedStock{StockVersion: h, absent: b.codes[0] == UnknownSKU, at: b.began}, nil
		if unsure {
			r.reclaim(q, b)
		}
		r.checkReplicas(q, b, few)
		r.checkHistory(q, b)
		return
	}
	for i := range b.codes {
		b.codes[i] = Unsure
	}
}

// stamp gives b its deadline.
func (r *batcher) stamp(q *skuQueue, b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.deadline = r.nextDeadline()
	for _, it := range b.items {
		b.confirmed = append(b.confirmed, q.wasConfirmed(it.Serial, b.deadline))
	}
}

// reserve makes the call.
func (r *batcher) reserve(q *skuQueue, b *batch, epoch int64) (StockVersion, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.o.Timeout)
	defer cancel()
	r.countCall(callReserve, len(b.items))
	return r.store.Reserve(ctx, q.sku, epoch, r.o.Wall().UnixMilli(), b.deadline, b.items, b.codes)
}

// reclaim tells the units that an earlier sending of b has reserved, whose answer was lost, from what is reserved
// already: only this batch has this deadline and this serial, unless a client heard of an earlier one. Those are new
// reservations, and may be forwarded.
func (r *batcher) reclaim(q *skuQueue, b *batch) {
	lost := false
	for i, code := range b.codes {
		if code != ReplayHeld || b.confirmed[i] {
			continue
		}
		if lost {
			b.codes[i] = Unsure
			continue
		}
		rec, ok, err := r.find(r.ctx, q, b.items[i].Serial)
		switch {
		case err != nil:
			lost = true
			b.codes[i] = Unsure
		case ok && rec.Status == StatusHeld && rec.Deadline == b.deadline:
			b.codes[i] = Held
		}
	}
}

// checkReplicas takes in whether enough replicas have what b reserved. If not, no order of b is forwarded: a fail-over
// could sell its unit again. The master has the reservations, so that they are given back.
func (r *batcher) checkReplicas(q *skuQueue, b *batch, few bool) {
	switch {
	case few:
		b.distrust()
		r.unreplicated.Inc()
		if !r.fewReplicas.Swap(true) {
			r.o.Log.Error("too few replicas have the newest reservations: orders are rejected, and their units given back",
				"sku", q.sku)
		}
	case holds(b.codes) && r.fewReplicas.Load() && r.fewReplicas.Swap(false):
		r.o.Log.Info("enough replicas have the newest reservations again", "sku", q.sku)
	}
}

// distrust makes what was reserved just now unsure, so that no client is told of it, and it is given back.
func (b *batch) distrust() {
	for i, code := range b.codes {
		if code == Held {
			b.codes[i] = Unsure
		}
	}
}

// checkHistory looks whether the ledger has forgotten what it said before b was sent, by whichever way that was
// heard. If so, no unit is sold until it is recovered: the SKU is frozen, and what was reserved just now is given
// back. A Redis looks for itself before it reserves a unit, at what this instance has changed or swept: of changes by
// others it may have heard since.
func (r *batcher) checkHistory(q *skuQueue, b *batch) {
	seen := b.seen
	if seen.Ver == 0 || b.stock.State == Lost || !b.stock.absent && !b.stock.Older(seen) {
		return
	}
	r.lost.Inc()
	r.o.Log.Error("ledger lost its history: the SKU is closed until it is recovered", "sku", q.sku,
		"epoch", seen.Epoch, "ver", seen.Ver, "found_epoch", b.stock.Epoch, "found_ver", b.stock.Ver,
		"missing", b.stock.absent)
	if b.stock.absent {
		return // what does not exist sells nothing
	}
	b.distrust()
	ctx, cancel := context.WithTimeout(r.ctx, r.o.Timeout)
	defer cancel()
	found := cachedStock{StockVersion: seen, at: b.stock.at}
	// Else the store has noticed it, and a further epoch could outrun a ledger that is right.
	if b.stock.State != Frozen {
		if h, err := r.store.CloseLost(ctx, q.sku, seen); err == nil {
			found.StockVersion = h
		}
	}
	found.State = Frozen
	b.stock = &found
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stock.Store(&found) // even if it is older than what was known: what was known is gone
}

// finishBatch answers all of b.
func (r *batcher) finishBatch(q *skuQueue, b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := r.o.Now()
	q.trying -= b.units
	if b.refreshes {
		q.refreshing.Store(false)
	}
	outcomes := make([]Outcome, len(b.orders))
	for i := range b.orders {
		outcomes[i] = r.decide(now, q, b, i)
	}
	if b.stock != nil { // before the answers: a client that has heard one finds the cache as the answer says
		r.learn(now, q, b.stock)
	}
	for i, p := range b.orders {
		q.complete(p, outcomes[i])
	}
	if b.err != nil || b.stock != nil && b.stock.open() {
		r.reportTaking(q, b.began, b.err)
	}
	if b.stock == nil {
		r.failQueued(q)
	}
}

// failQueued answers the orders that waited while a call found out nothing: they have waited for about as long as a
// call may take, and would wait as long once more for theirs. Nothing was sent for them. mu is held.
func (r *batcher) failQueued(q *skuQueue) {
	waiting := q.orders
	if q.refresher != nil {
		waiting = append(waiting, q.refresher)
		q.refreshing.Store(false)
	}
	q.orders, q.refresher = nil, nil
	for _, p := range waiting {
		q.complete(p, Outcome{Code: Unsure, Serial: p.Serial})
		r.countAnswer(q, Unsure, 1+len(p.duplicates))
	}
}

// decide remembers what became of the order at place i, and returns the answer to it. mu is held.
func (r *batcher) decide(now int64, q *skuQueue, b *batch, i int) Outcome {
	p, code := b.orders[i], b.codes[i]
	if (b.adrift && leavesRoom(code) || b.sent && code == Unsure) && !b.confirmed[i] {
		r.markOrphan(q, p.Serial, b.deadline)
	}
	out := Outcome{Code: code, Serial: p.Serial}
	switch code {
	case Held:
		out.Deadline = b.deadline
		p.keep(r.core, now, false)
		q.confirmHeld(p.Serial, b.deadline, r.nextDeadline())
	case ReplayHeld, ReplaySold:
		p.keep(r.core, now, code == ReplaySold)
	case SoldOut:
		out = Outcome{Code: shortage(b.stock.StockVersion, p.Quantity)}
	case UnknownSKU:
		out.Serial = ""
	case NotOnSale:
		out = notOnSale(b.stock.StockVersion, r.o.Wall().UnixMilli())
	case StaleEpoch: // it is answered anew
		return out
	}
	r.countAnswer(q, out.Code, 1)
	return out
}

// leavesRoom reports whether an earlier sending of an order that heard c would still reserve units where it arrives
// later, when some have come back. In a later epoch it would not, and where there is no ledger it finds none.
func leavesRoom(c Code) bool {
	return c == SoldOut || c == NotOnSale || c == UserLimit
}

// holds reports whether any order is held, now or since an earlier sending.
func holds(codes []Code) bool {
	return slices.Contains(codes, Held) || slices.Contains(codes, ReplayHeld)
}

// learnVersion takes in what the store says of q now, and sends what waits.
func (r *batcher) learnVersion(q *skuQueue, h StockVersion) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := r.o.Now()
	r.learn(now, q, &cachedStock{StockVersion: h, at: now})
	r.dispatch(q)
}

// learn takes in what a reply said, and answers the orders for which no unit is left. mu is held.
func (r *batcher) learn(now int64, q *skuQueue, next *cachedStock) {
	q.learnSale(next.Sale)
	if q.stock.Load().outlives(next) {
		return
	}
	s := *next
	s.wall = r.o.Wall().UnixNano() - r.o.Now()
	if _, sold := s.unavailable(now, 1); sold && next.at < r.gapUntil.Load() {
		r.expire(now, &s)
	}
	q.stock.Store(&s)
	r.mirror.reflect(q, &s)
	waiting := q.orders
	q.orders = nil
	for _, p := range waiting {
		if _, sold := q.unavailable(now, &s, p.Quantity); sold {
			r.place(now, q, p)
		} else {
			q.orders = append(q.orders, p)
		}
	}
}
