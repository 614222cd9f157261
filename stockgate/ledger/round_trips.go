package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sluice/stockgate/redisconn"
)

const (
	maxTrips = 2 // round trips with orders and their outcomes under way at once, to one server

	// What may share a round trip: Redis answers it whole within stock.redis.timeout, also where several instances ask.
	callsPerTrip  = 32
	ordersPerTrip = 256 // the last call of each kind may go beyond that
)

// The kinds of calls that share round trips.
const (
	settling = iota
	reserving
	kindsOfCalls
)

// roundTrips lets calls for several SKUs share round trips to one server. A call of its own costs this process and
// Redis two system calls and wake-ups each, and orders that are spread over many SKUs find none of their own SKU to
// share a call with. While maxTrips are under way, what comes waits for one of them to end, and leaves with others
// that wait. Settlements and reservations have half of each round trip, so that neither waits behind all of the other
// kind: clients wait for a reservation, and thousands of SKUs may owe a settlement. What one kind leaves the other has.
type roundTrips struct {
	mu       sync.Mutex
	underWay int
	waiting  [kindsOfCalls][]*sharedCall
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
	kind := settling
	if q.script == reserveScript {
		kind = reserving
	}
	t.waiting[kind] = append(t.waiting[kind], w)
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
	var all trip
	for kind := range t.waiting {
		var half trip
		half.fill(&t.waiting[kind], 2)
		all = trip{append(all.calls, half.calls...), all.orders + half.orders, all.size + half.size}
	}
	for kind := range t.waiting {
		all.fill(&t.waiting[kind], 1)
	}
	if len(all.calls) == 0 {
		t.underWay--
	}
	return all.calls
}

// trip is what goes with a round trip.
type trip struct {
	calls        []*sharedCall
	orders, size int // of all calls
}

// fill adds calls that wait while there is room in this part of a round trip: the half of it for 2, all of it for 1.
func (p *trip) fill(waiting *[]*sharedCall, part int) {
	rest := *waiting
	for len(rest) > 0 && len(p.calls) < callsPerTrip/part && p.orders < ordersPerTrip/part &&
		p.size < maxBatchBytes/part {
		w := rest[0]
		rest[0], rest = nil, rest[1:]
		p.calls = append(p.calls, w)
		p.orders += len(w.items)
		p.size += w.size()
	}
	*waiting = rest
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
