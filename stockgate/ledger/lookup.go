package ledger

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// ErrTooMany is the cause when an order was not looked up, since too many others are.
var ErrTooMany = errors.New("too many look-ups")

// lookups finds orders by their serials, many in one call. One call is under way at a time. Calls begin at a bounded
// rate, whatever is asked for: what comes meanwhile waits for the next one, and what finds no room hears ErrTooMany.
type lookups struct {
	*core
	size int // serials in one call, and that wait
	rate tokenBucket

	waits atomic.Int64 // serials; written under mu

	mu      sync.Mutex
	waiting []*lookup
	running bool
}

// lookup is what one order, or one client that asks for the state of one, wants to know.
type lookup struct {
	names []OrderName
	found []Found
	done  chan struct{}
}

// hasRoom reports whether a serial would be looked up now, where at most so many wait. It writes nothing.
func (x *lookups) hasRoom(most int64) bool { return x.waits.Load() < most }

// findMany looks names up, of which there is at least one and no more than size. It waits for its turn and for the
// call.
func (x *lookups) findMany(names []OrderName) ([]Found, error) {
	l := &lookup{names: names, done: make(chan struct{})}
	if !x.add(l) {
		return nil, ErrTooMany
	}
	<-l.done
	return l.found, nil
}

// findOne looks one order up.
func (x *lookups) findOne(sku, serial string) Found {
	found, err := x.findMany([]OrderName{{SKU: sku, Serial: serial}})
	if err != nil {
		return Found{Err: err}
	}
	return found[0]
}

func (x *lookups) add(l *lookup) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.waits.Load() + int64(len(l.names))
	if n > int64(x.size) || x.closed.Load() {
		return false
	}
	x.waits.Store(n)
	x.waiting = append(x.waiting, l)
	if !x.running {
		x.running = true
		x.work.Go(x.run)
	}
	return true
}

// run makes calls until nothing waits. It is begun when something does.
func (x *lookups) run() {
	for more := true; more; more = x.more() {
		for !x.rate.take(int64(time.Since(x.start))) {
			time.Sleep(time.Duration(x.rate.interval / 4))
		}
		runtime.Gosched() // the goroutines that are about to ask come along
		batch := x.take()
		var names []OrderName
		for _, l := range batch {
			names = append(names, l.names...)
		}
		found := x.call(names)
		for _, l := range batch {
			l.found, found = found[:len(l.names)], found[len(l.names):]
			close(l.done)
		}
	}
}

func (x *lookups) take() []*lookup {
	x.mu.Lock()
	defer x.mu.Unlock()
	batch := x.waiting
	x.waiting = nil
	x.waits.Store(0)
	return batch
}

// more reports whether something waits for another call. If not, the next one begins a run.
func (x *lookups) more() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.running = len(x.waiting) > 0
	return x.running
}

// call makes one call.
func (x *lookups) call(names []OrderName) []Found {
	ctx, cancel := context.WithTimeout(x.ctx, x.o.Timeout)
	defer cancel()
	x.countCall(callLookup, len(names))
	return x.store.FindAll(ctx, names)
}

// LookUp finds out whether an order has won before, where Cached said that this may answer it. It waits for one call of
// the store, and reserves nothing, so that the caller need not hold what a reservation needs. It reports false when the
// order is to be passed on to Reserve.
func (r *Reserver) LookUp(now int64, o Order) (Outcome, bool) {
	if !valid(&o) {
		return Outcome{}, false
	}
	out := r.answer(now, o, (*Reserver).lookUpEarlier)
	return out, out.Code != passOn
}

// lookUpEarlier looks one order up if its SKU is sold out, and if no call that may reserve it is under way.
func (r *Reserver) lookUpEarlier(now int64, o Order, k *knownOrder) Outcome {
	q := r.skus.Find(o.SKU)
	if q == nil {
		return Outcome{Code: passOn}
	}
	k.queue = q
	s := q.stock.Load()
	code, sold := q.unavailable(now, s, o.Quantity)
	if !sold || s.unusable() || r.underWay(q, k.Serial) {
		return Outcome{Code: passOn}
	}
	return r.verify(now, q, k.pending(now, &o), &o, s.outcome(now, code))
}

// underWay reports whether an order of this serial may be reserved without the store's answer being known.
func (r *Reserver) underWay(q *skuQueue, serial string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bySerial[serial] != nil || r.indistinct(q, serial)
}

// verify looks an order up that the sold-out cache answered with out. A winner whose response was lost hears so of its
// order. A serial of an earlier sale than the ledger's says nothing, and another one is derived.
func (r *Reserver) verify(now int64, q *skuQueue, p *pendingOrder, o *Order, out Outcome) Outcome {
	f := r.lookups.findOne(q.sku, p.Serial)
	switch {
	case f.Err != nil:
		return r.unverified(now, q, o, out)
	case p.derived && p.sale < f.Sale:
		q.mu.Lock()
		defer q.mu.Unlock()
		q.learnSale(f.Sale)
		return Outcome{Code: StaleEpoch}
	case !f.OK:
		return out
	}
	found := Outcome{Code: replay(f.Record, p.Item), Serial: p.Serial}
	if found.Code == ReplayHeld || found.Code == ReplaySold {
		p.keep(&r.core, now, found.Code == ReplaySold)
	}
	return found
}

const maxSearched = 1024 // SKUs

// State looks up what is known of a serial; without a SKU, among the SKUs that have a ledger, if these are not more
// than maxSearched. Past that, and when too many ask, the error is ErrTooMany.
func (r *Reserver) State(sku, serial string) (rec Record, of string, ok bool, err error) {
	skus, by := []string{sku}, &r.states
	if sku == "" {
		by = &r.searches
		if skus = r.ledgers(); len(skus) > maxSearched {
			return Record{}, "", false, ErrTooMany
		}
	}
	for len(skus) > 0 {
		n := min(len(skus), MaxTogether)
		names := make([]OrderName, n)
		for i, sku := range skus[:n] {
			names[i] = OrderName{SKU: sku, Serial: serial}
		}
		skus = skus[n:]
		all, fault := by.findMany(names)
		for i, f := range all {
			if f.OK {
				return f.Record, names[i].SKU, true, nil
			}
			fault = cmp.Or(fault, f.Err)
		}
		if err = cmp.Or(err, fault); errors.Is(err, ErrTooMany) {
			break
		}
	}
	return Record{}, "", false, err
}
