package ledger

import (
	"math"
	"sync"
	"sync/atomic"
)

const maxCalls = 2 // of one SKU under way at once; the second one only when its batch is full

// skuQueue has the orders of one SKU that wait for a batch, and all else that the reserver knows of the SKU. What a
// rejection reads comes first.
type skuQueue struct {
	sku             string
	hash            uint64                      // in the table
	stock           atomic.Pointer[cachedStock] // written under mu
	refreshing      atomic.Bool                 // an order that waits or is in a call refreshes stock; written under mu
	reportedSoldOut atomic.Int64                // ns: until when the upstream's own word holds; see MarkSoldOut
	sale            atomic.Int64                // the latest that was seen, of which serials are derived; written under mu

	tracked   atomic.Bool // its reservations are looked after even if it is not asked for
	preloaded atomic.Bool // it has a ledger, although it was not asked for yet
	status    statusCache

	// The maintenance loop's own.
	nextSweep  int64 // ns
	backlogged bool  // its changes are not acknowledged

	mu      sync.Mutex // guards what follows
	removed bool
	waiting
	unresolved map[string]*unresolved // by serial
	pending    []pendingOp            // in order
	settling   bool                   // a goroutine works on pending
	mirror     mirrorState
	faults     struct{ taking, settling fault }
}

// waiting is the orders of a SKU that wait or are in a call.
type waiting struct {
	orders    []*pendingOrder          // at most MaxQueue
	refresher *pendingOrder            // goes with the next batch, although the SKU is sold out; nil = none
	bySerial  map[string]*pendingOrder // that wait or are in a call
	calls     int
	trying    int64           // units in calls
	confirmed map[string]bool // serials of which a client heard that they are held until heldUntil
	heldUntil int64           // Unix ms: the deadline of reservations that are made now
}

// pendingOrder is one order that waits.
type pendingOrder struct {
	*knownOrder
	request    string          // as in Item
	since      int64           // ns
	duplicates []*pendingOrder // of the same serial
	out        chan Outcome
}

func (p *pendingOrder) answer(o Outcome) { p.out <- o } // never blocks: there is room for one, and there is only one

// hasLedger reports whether the SKU has a ledger, as far as is known.
func (q *skuQueue) hasLedger() bool {
	s := q.stock.Load()
	return q.tracked.Load() || s != nil && !s.absent
}

// newest is the newest version of the stock, as far as a ledger is known, with the latest sale that was seen.
func (q *skuQueue) newest() (h StockVersion) {
	if s := q.stock.Load(); s != nil && !s.absent {
		h = s.StockVersion
	}
	h.Sale = q.sale.Load()
	return h
}

// learnSale notes a sale that was seen. mu is held.
func (q *skuQueue) learnSale(sale int64) { q.sale.Store(max(q.sale.Load(), sale)) }

// enqueue lets p wait on q, or answers it at once. It reports false when q has been removed.
func (r *batcher) enqueue(now int64, q *skuQueue, p *pendingOrder) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.bySerial[p.Serial]
	switch {
	case q.removed:
		return false
	case r.closed.Load():
		p.answer(Outcome{Code: Overloaded})
	case first != nil: // no two calls of one instance ever carry the same serial at the same time
		first.duplicates = append(first.duplicates, p)
	case r.indistinct(q, p.Serial):
		p.answer(Outcome{Code: Unsure, Serial: p.Serial})
	default:
		q.bySerial[p.Serial] = p
		r.place(now, q, p)
		r.dispatch(q)
	}
	return true
}

// place lets p wait for units, makes it the one that refreshes the cache, or answers it from the cache. mu is held, and
// p is in bySerial.
func (r *batcher) place(now int64, q *skuQueue, p *pendingOrder) {
	s := q.stock.Load()
	code, sold := q.unavailable(now, s, p.Quantity)
	switch {
	case !sold && len(q.orders) < r.o.MaxQueue:
		q.orders = append(q.orders, p)
	case !sold:
		q.complete(p, Outcome{Code: Overloaded})
		r.countAnswer(q, Overloaded, 1)
	case r.refreshDue(now, q, s, p.Quantity) && (s.State == Verifying || r.refreshes.take(now)):
		q.refreshing.Store(true)
		q.refresher = p
	default:
		out := s.outcome(now, code)
		out.cached = !s.unusable()
		q.complete(p, out)
	}
}

// dispatch starts the call that may leave now: a first one when none is under way, a second one when its batch would be
// full. mu is held.
func (r *batcher) dispatch(q *skuQueue) {
	ready := q.refresher != nil || len(q.orders) > 0 && q.orders[0].Quantity <= q.room()
	if ready && (q.calls == 0 || q.calls < maxCalls && len(q.orders) >= r.o.MaxBatch) {
		q.calls++
		r.work.Go(func() { r.runBatches(q) })
	}
}

// room is how many more units may be tried. While nothing is known, one call finds out.
func (q *skuQueue) room() int64 {
	switch s := q.stock.Load(); {
	case s != nil:
		return s.Free - q.trying
	case q.calls == 0:
		return math.MaxInt64
	}
	return 0
}

// complete answers p and the duplicates of it. mu is held.
func (q *skuQueue) complete(p *pendingOrder, out Outcome) {
	delete(q.bySerial, p.Serial)
	for _, d := range p.duplicates {
		d.answer(d.outcomeAfter(p, out))
	}
	p.answer(out)
}

// outcomeAfter is the answer to an order when another one of its serial was answered with out.
func (p *pendingOrder) outcomeAfter(first *pendingOrder, out Outcome) Outcome {
	same := p.Item == first.Item
	switch out.Code {
	case Held, ReplayHeld, ReplaySold:
		if !same {
			return Outcome{Code: OtherOrder, Serial: out.Serial}
		}
		if out.Code == Held {
			return Outcome{Code: ReplayHeld, Serial: out.Serial}
		}
	case OtherOrder:
		if !same { // it may be p's
			return Outcome{Code: Overloaded}
		}
	}
	return out
}

// confirmHeld notes that a client hears that serial is reserved until a deadline, while reservations that are made now
// are until then. Older ones need not be remembered: no call has their deadline any more. mu is held.
func (q *skuQueue) confirmHeld(serial string, deadline, then int64) {
	if deadline < then {
		return
	}
	if q.heldUntil != deadline {
		q.heldUntil, q.confirmed = deadline, make(map[string]bool)
	}
	q.confirmed[serial] = true
}

// wasConfirmed reports whether a client heard that serial is reserved until a deadline of reservations that are made
// now: an earlier order, which may have been forwarded. mu is held.
func (q *skuQueue) wasConfirmed(serial string, deadline int64) bool {
	return q.heldUntil == deadline && q.confirmed[serial]
}
