package ledger

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sluice/stockgate/redisconn"
)

const (
	maxTrips = 2 // round trips with orders and their outcomes under way at once, to one server

	// What may share a round trip: Redis answers it whole within stock.redis.timeout, also where several instances ask.
	callsPerTrip  = 32
	ordersPerTrip = 256
)

// roundTrips lets calls for several SKUs share round trips to one server. A call of its own costs this process and
// Redis two system calls and wake-ups each, and orders that are spread over many SKUs find none of their own SKU to
// share a call with. While maxTrips are under way, what comes waits for one of them to end, and leaves with all others
// that wait.
type roundTrips struct {
	mu       sync.Mutex
	underWay int
	waiting  []*sharedCall
}

// trips are the round trips to each server: one that hangs holds up no other. The name of all but a cluster's is "".
type trips struct {
	mu     sync.Mutex
	byName map[string]*roundTrips
}

// tripsTo returns the round trips to the server that has a key.
func (r *Store) tripsTo(ctx context.Context, key string) *roundTrips {
	name := r.link.Owner(ctx, key)
	r.trips.mu.Lock()
	defer r.trips.mu.Unlock()
	t := r.trips.byName[name]
	if t == nil {
		t = &roundTrips{}
		r.trips.byName[name] = t
	}
	return t
}

// sharedCall is a call that waits for a round trip, or is in one.
type sharedCall struct {
	*scriptCall
	ctx   context.Context // a call that still waits when this ends is not sent
	since time.Time
	done  chan struct{}
}

// share is call, in a round trip with others where there are many. The second argument of the script is the time now.
func (r *Store) share(ctx context.Context, q *scriptCall) (answer []any, err error) {
	q.keys = r.keys(q.sku)
	t := r.tripsTo(ctx, q.keys[0])
	t.mu.Lock()
	if t.underWay < maxTrips {
		t.underWay++
		t.mu.Unlock()
		defer r.nextTrip(t)
		return r.call(ctx, q)
	}
	w := &sharedCall{q, ctx, time.Now(), make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.mu.Unlock()
	<-w.done
	return q.answer, q.err
}

// nextTrip ends a round trip, and begins another one with the calls that wait.
func (r *Store) nextTrip(t *roundTrips) {
	calls := t.take()
	if len(calls) == 0 {
		return
	}
	go func() {
		for ; len(calls) > 0; calls = t.take() {
			r.makeTrip(calls)
		}
	}()
}

// take takes out the calls of the next round trip. Where none waits the last one is over.
func (t *roundTrips) take() (calls []*sharedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, orders, size := 0, 0, 0
	for n < len(t.waiting) && n < callsPerTrip && orders < ordersPerTrip && size < maxBatchBytes {
		orders += len(t.waiting[n].items)
		size += t.waiting[n].size()
		n++
	}
	if n == 0 {
		t.underWay--
		return nil
	}
	calls = slices.Clone(t.waiting[:n])
	clear(t.waiting[:n])
	t.waiting = t.waiting[n:]
	return calls
}

// makeTrip makes the round trip of calls.
func (r *Store) makeTrip(calls []*sharedCall) {
	qs := make([]*scriptCall, 0, len(calls))
	for _, w := range calls {
		if w.err = w.ctx.Err(); w.err != nil {
			w.err = fmt.Errorf("%w: %w", redisconn.ErrUnsent, w.err)
			continue
		}
		w.args[1] = w.args[1].(int64) + time.Since(w.since).Milliseconds() // now: its sale may be over meanwhile
		qs = append(qs, w.scriptCall)
	}
	if len(qs) > 0 {
		r.callPipelined(context.Background(), qs) // which ends in time by itself
	}
	for _, w := range calls {
		close(w.done)
	}
}

// size is how many bytes of requests a call has.
func (q *scriptCall) size() (n int) {
	for i := range q.items {
		n += len(q.items[i].Request)
	}
	return n
}
