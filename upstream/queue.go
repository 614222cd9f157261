package upstream

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// A request that finds all connections in use waits for one: a burst of pages is served a moment later, and not
// rejected. Orders and pages wait in a line each, since each has connections of its own. The line is that of the whole
// Pool: the first connection that comes free at any target goes to the request that has waited longest.

// place is the right to one connection of a target, which is counted as in use.
type place struct {
	target *target // nil = none
	conn   *conn   // an idle connection, which may have ended since; nil = one has to be opened
}

// waiter is one request that waits.
type waiter struct {
	order   bool
	ts      *targets // among which it chooses
	barred  uint64   // those of ts that it must not use
	seq     uint64   // the lower one came first
	granted chan place
	at      *list.Element // nil = it waits no more
}

// accepts reports whether w may use t.
func (w *waiter) accepts(t *target) bool {
	for i, known := range w.ts.all {
		if known == t {
			return w.barred&(1<<i) == 0
		}
	}
	return true
}

// Why a wait has ended.
const (
	waitServed = iota
	waitTimedOut
	waitFull // there was no room to wait
	numWaitEnds
)

var waitEnds = [numWaitEnds]string{"served", "timed_out", "full"}

// queue holds the requests of one Pool that wait for a connection. It is safe for concurrent use.
type queue struct {
	max     atomic.Int64 // requests of both lines
	targets *atomic.Pointer[targets]
	clock   clock
	lengths [2]atomic.Int32 // of the lines
	ends    [numWaitEnds]atomic.Uint64

	mu     sync.Mutex
	lines  [2]list.List // of *waiter: pages, orders; the first one has waited longest
	seq    uint64
	closed bool
}

// line is the index of the line of orders, or of pages.
func line(order bool) int {
	if order {
		return 1
	}
	return 0
}

// waiting reports whether requests wait, behind which a new one has to wait too.
func (q *queue) waiting(order bool) bool { return q.lengths[line(order)].Load() > 0 }

// wait waits for a place, for d at most. It reports false when there was none in time, no room to wait, or the Pool was
// closed.
func (q *queue) wait(w *waiter, d time.Duration) (place, bool) {
	if !q.join(w) {
		q.ends[waitFull].Add(1)
		return place{}, false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case p := <-w.granted:
		q.ends[waitServed].Add(1)
		return p, p.target != nil
	case <-timer.C:
	}
	if q.leave(w) {
		q.ends[waitTimedOut].Add(1)
		return place{}, false
	}
	p := <-w.granted // it was granted in the same moment
	q.ends[waitServed].Add(1)
	return p, p.target != nil
}

// join puts w at the end of its line. A connection that came free a moment before, when the line was empty, is found.
func (q *queue) join(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || int64(q.lines[0].Len()+q.lines[1].Len()) >= q.max.Load() {
		return false
	}
	w.granted = make(chan place, 1)
	q.seq++
	w.seq = q.seq
	l := line(w.order)
	w.at = q.lines[l].PushBack(w)
	q.lengths[l].Add(1)
	if q.lines[l].Len() == 1 {
		for _, t := range q.targets.Load().all {
			q.grant(t)
		}
	}
	return true
}

// leave takes w out of its line; false when it is in none any more.
func (q *queue) leave(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remove(w)
}

// remove takes w out of its line. mu is held.
func (q *queue) remove(w *waiter) bool {
	if w.at == nil {
		return false
	}
	l := line(w.order)
	q.lines[l].Remove(w.at)
	w.at = nil
	q.lengths[l].Add(-1)
	return true
}

// serve gives what has come free at t to those who wait. The mutex of t is not held.
func (q *queue) serve(t *target) {
	if q.lengths[0].Load()+q.lengths[1].Load() == 0 { // nearly always
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.grant(t)
}

// grant gives places of t to requests that wait for them, those that came first before the others. mu is held.
func (q *queue) grant(t *target) {
	if !q.targets.Load().offers(t, q.clock.now()) {
		return
	}
	for {
		pages, orders := q.first(false, t), q.first(true, t)
		if orders != nil && (pages == nil || orders.seq < pages.seq) {
			pages, orders = orders, pages
		}
		if !q.grantTo(pages, t) && !q.grantTo(orders, t) {
			return
		}
	}
}

// first is the one of a line that has waited longest and may use t; nil = none.
func (q *queue) first(order bool, t *target) *waiter {
	for e := q.lines[line(order)].Front(); e != nil; e = e.Next() {
		if w := e.Value.(*waiter); w.accepts(t) {
			return w
		}
	}
	return nil
}

// grantTo gives w a place of t, if t has one for it. w may be nil.
func (q *queue) grantTo(w *waiter, t *target) bool {
	if w == nil {
		return false
	}
	c, err := t.pop(w.order, false)
	if err != nil {
		return false
	}
	q.remove(w)
	w.granted <- place{t, c} // has room for one
	return true
}

// close ends all waits.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for l := range q.lines {
		for e := q.lines[l].Front(); e != nil; e = q.lines[l].Front() {
			w := e.Value.(*waiter)
			q.remove(w)
			w.granted <- place{}
		}
	}
}

// offers reports whether a waiting request is to use t at now: t is usable, or no target is.
func (ts *targets) offers(t *target, now time.Duration) bool {
	if t.usable(now) {
		return true
	}
	for _, other := range ts.all {
		if other.usable(now) {
			return false
		}
	}
	return true
}
