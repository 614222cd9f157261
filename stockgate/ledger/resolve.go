package ledger

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// OrderStatus is what the upstream knows of a serial.
type OrderStatus int8

// The statuses. The zero value is the one that changes nothing.
const (
	OrderUnknown  OrderStatus = iota // no answer, or one that says nothing
	OrderExists                      // the upstream has the order
	OrderNotFound                    // the upstream has no such order
)

// AskOrder asks whether the upstream has an order. An error means OrderUnknown.
type AskOrder func(ctx context.Context, sku, serial string) (OrderStatus, error)

const (
	maxAsked      = 256 // serials in one run of the resolver
	maxConcurrent = 8   // of them at a time
	askTimeout    = 2 * time.Second
)

// resolution is how an attempt to find an outcome out ended.
type resolution string

const (
	foundOrder  resolution = "confirmed" // the upstream has the order
	foundNone   resolution = "released"  // the upstream has none and cannot get it any more
	foundOrphan resolution = "orphan"    // it was never forwarded: released
	unfenced    resolution = "unfenced"  // the upstream has none, but it could still arrive: stays held
	undecided   resolution = "undecided" // it is not known: stays held
	askFailed   resolution = "failed"    // the store or the upstream could not be asked: stays held
	gone        resolution = "gone"      // it has been decided elsewhere
)

// resolver finds out what became of unresolved serials, and has them settled.
type resolver struct {
	*core
	finisher *finisher
}

// question is an unresolved serial whose time has come, as it was then.
type question struct {
	queue  *skuQueue
	serial string
	unresolved
}

// resolveDue tries to find out the outcomes whose time has come. What it has no time for is due again in the next run.
func (r *resolver) resolveDue(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseFor/2)
	defer cancel()
	questions, all := make(chan question, maxAsked), r.skus.All()
	now, first := r.o.Clock().UnixMilli(), rand.N(len(all)+1) // none has to wait for the others again and again
	for _, q := range slices.Concat(all[first:], all[:first]) {
		r.collectDue(q, now, questions)
	}
	close(questions)
	var workers sync.WaitGroup
	for range min(maxConcurrent, len(questions)) {
		workers.Go(func() {
			for q := range questions {
				if ctx.Err() == nil {
					result := r.resolve(ctx, &q)
					r.resolutions.WithLabelValues(string(result)).Inc()
					r.endAttempt(q, result)
				}
			}
		})
	}
	workers.Wait()
}

// collectDue adds the serials of q that are due, as long as there is room for them.
func (r *resolver) collectDue(q *skuQueue, now int64, questions chan<- question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for serial, u := range q.unresolved {
		switch {
		case len(questions) == cap(questions):
			return
		case len(u.orphans) == 0 && now > u.until: // the next sweep hands it to an instance
			r.resolved(q, serial)
		case u.due <= now, u.due > now+longestPause: // that of a clock that ran ahead
			questions <- question{queue: q, serial: serial, unresolved: *u}
		}
	}
}

// resolve tries to find out one outcome.
func (r *resolver) resolve(ctx context.Context, u *question) resolution {
	ask := r.live.Load().ask
	rec, ok, err := r.find(ctx, u.queue, u.serial)
	switch {
	case err != nil:
		return askFailed
	case !ok && len(u.orphans) > 0 && u.misses < orphanLookups:
		u.misses++ // tries alone pass while Redis is away, and what was sent before an outage may arrive after it
		return undecided
	case !ok, rec.Status != StatusHeld:
		return gone
	case slices.Contains(u.orphans, rec.Deadline):
		return r.releaseOrphan(ctx, u)
	case !u.asks:
		return gone // the reservation is another order's
	case ask == nil:
		return undecided
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	fenced := r.fenced(rec.Deadline) // before it is asked: by the time that it answers an order may have come
	status, err := ask(ctx, u.queue.sku, u.serial)
	switch {
	case err != nil:
		return askFailed
	case status == OrderExists:
		return r.finishResolved(u, Confirm, foundOrder)
	case status == OrderNotFound && fenced:
		return r.finishResolved(u, Release, foundNone)
	case status == OrderNotFound:
		return unfenced
	}
	return undecided
}

// releaseOrphan gives the unit of an order back of which no client heard. One that waits in a queue may have been
// handed out since: then it is an order like every other.
func (r *resolver) releaseOrphan(ctx context.Context, u *question) resolution {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	now := r.o.Clock()
	done, h, err := r.store.Decide(ctx, u.queue.sku, DecideCall{Now: now.UnixMilli(),
		Keep:      now.Add(r.o.Keep).UnixMilli(),
		Decisions: []Decision{{Serial: u.serial, Move: MoveCancel}}})
	switch {
	case err != nil:
		return askFailed
	case done[0] == NotQueued:
		return r.finishResolved(u, Release, foundOrphan)
	case done[0] != Changed:
		return gone
	}
	r.countSettled(u.queue, Release)
	r.noteSettled(u.queue, u.serial, Release)
	r.finisher.batches.learnVersion(u.queue, h)
	u.queue.mu.Lock()
	defer u.queue.mu.Unlock()
	r.resolved(u.queue, u.serial)
	return foundOrphan
}

// fenced reports whether an order that the upstream does not know now, of a reservation until deadline, can no longer
// come into being.
func (r *resolver) fenced(deadline int64) bool {
	now := r.live.Load()
	switch now.reasonOfNotFound {
	case fenceCancel:
		return true
	case fenceDeadline, fenceHold:
		return r.o.Clock().UnixMilli() >= deadline+now.grace.Milliseconds()
	}
	return false
}

// finishResolved queues the settlement of an outcome that was found out.
func (r *resolver) finishResolved(u *question, op Op, result resolution) resolution {
	select {
	case r.finisher.capacity <- struct{}{}:
	default:
		return askFailed // there is no room now
	}
	if !r.finisher.addPending(u.queue, pendingOp{u.serial, op}) {
		<-r.finisher.capacity
		return askFailed
	}
	return result
}

// endAttempt forgets a serial, or puts it off. One that is settled is forgotten when the store has the settlement.
func (r *resolver) endAttempt(was question, result resolution) {
	q := was.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.unresolved[was.serial]
	switch {
	case u == nil, u.newestOrphan() != was.newestOrphan(), u.asks != was.asks: // something happened meanwhile
	case result == gone:
		r.resolved(q, was.serial)
	case result == foundOrder, result == foundNone, result == foundOrphan:
		u.due = r.o.Clock().UnixMilli() + longestPause
	default:
		u.misses = was.misses
		u.backOff(r.o.Clock().UnixMilli())
	}
}
