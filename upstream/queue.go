package upstream

import (
	"container/list"
	"sync/atomic"
	"time"
)

// A request that finds all connections of its target in use waits for one: a burst of pages is served a moment later,
// and not rejected. Each target has a queue of its own. Orders and pages wait in a line each, since each has
// connections of its own; what came first is served first. A third line is that of connections that are about to be
// held.

// place is the right to one connection of a target, which is counted as in use.
type place struct {
	target *target // nil = none
	conn   *conn   // an idle connection, which may have ended since; nil = one has to be opened
}

// lineKind is what a waiter waits for.
type lineKind uint8

const (
	pageLine lineKind = iota
	orderLine
	heldLine
	numLines
)

// lineOf is the line of a request for a connection.
func lineOf(order bool) lineKind {
	if order {
		return orderLine
	}
	return pageLine
}

// waiter is one request that waits.
type waiter struct {
	line    lineKind
	conn    *conn         // of heldLine: it has one
	seq     uint64        // the lower one came first
	granted chan place    // without a target: it is to choose again
	at      *list.Element // nil = it waits no more
}

// Why a wait has ended.
const (
	waitServed = iota
	waitTimedOut
	waitFull // there was no room to wait
	numWaitEnds
	waitMoved // it is to choose a target again; not counted
)

var waitEnds = [numWaitEnds]string{"served", "timed_out", "full"}

// waits bounds and counts the waits at all targets of a Pool.
type waits struct {
	max, now atomic.Int64 // requests
	ends     [numWaitEnds]atomic.Uint64
}

// queue holds the requests that wait at one target, whose mutex guards it.
type queue struct {
	waits  *waits
	length atomic.Int64 // of all lines; may be read without the mutex
	lines  [numLines]list.List
	seq    uint64
}

// first is the waiter of a line that has waited longest; nil = none.
func (q *queue) first(k lineKind) *waiter {
	if e := q.lines[k].Front(); e != nil {
		return e.Value.(*waiter)
	}
	return nil
}

// add puts w at the end of its line, if there is room.
func (q *queue) add(w *waiter) bool {
	if q.waits.now.Add(1) > q.waits.max.Load() {
		q.waits.now.Add(-1)
		return false
	}
	q.seq++
	w.seq, w.granted = q.seq, make(chan place, 1)
	w.at = q.lines[w.line].PushBack(w)
	q.length.Add(1)
	return true
}

// remove takes w out of its line; false when it is in none any more.
func (q *queue) remove(w *waiter) bool {
	if w.at == nil {
		return false
	}
	q.lines[w.line].Remove(w.at)
	w.at = nil
	q.length.Add(-1)
	q.waits.now.Add(-1)
	return true
}

// end ends the wait of w, with p.
func (q *queue) end(w *waiter, p place) {
	q.remove(w)
	w.granted <- p // has room for one
}

// wait waits at t until w is served, for d at most.
func (t *target) wait(w *waiter, d time.Duration) (p place, end int) {
	p, end = t.join(w)
	if end == waitTimedOut {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case p = <-w.granted:
			end = waitServed
		case <-timer.C:
			t.mu.Lock()
			late := t.queue.remove(w)
			t.mu.Unlock()
			if !late { // it was granted in the same moment
				p, end = <-w.granted, waitServed
			}
		}
	}
	if end == waitServed && p.target == nil {
		return p, waitMoved
	}
	t.queue.waits.ends[end].Add(1)
	return p, end
}

// join puts w into its line, and returns waitTimedOut: how the wait ends unless it is served. What came free a moment
// before it has at once.
func (t *target) join(w *waiter) (place, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.retired && w.line != heldLine:
		return place{}, waitServed
	case w.line == heldLine && t.queue.lines[heldLine].Len() >= t.maxHeld()/2, !t.queue.add(w):
		return place{}, waitFull
	}
	t.serve()
	return place{}, waitTimedOut
}

// serve gives what has come free to those who wait. mu is held.
func (t *target) serve() {
	if t.queue.length.Load() == 0 { // nearly always
		return
	}
	for {
		first, second := t.queue.first(pageLine), t.queue.first(orderLine)
		if first == nil || second != nil && second.seq < first.seq {
			first, second = second, first
		}
		if !t.grant(first) && !t.grant(second) {
			break
		}
	}
	for w := t.queue.first(heldLine); w != nil && t.held < t.maxHeld(); w = t.queue.first(heldLine) {
		t.held++
		w.conn.held = true
		t.queue.end(w, place{t, w.conn})
	}
}

// grant gives w a place, if there is one for it. w may be nil. mu is held.
func (t *target) grant(w *waiter) bool {
	if w == nil {
		return false
	}
	c, err := t.take(w.line == orderLine)
	if err == nil {
		t.queue.end(w, place{t, c})
	}
	return err == nil
}

// moveWaiters has the requests that wait for a connection choose their targets again.
func (t *target) moveWaiters() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range [...]lineKind{pageLine, orderLine} {
		for w := t.queue.first(k); w != nil; w = t.queue.first(k) {
			t.queue.end(w, place{})
		}
	}
}

// The part of a target's connections for pages, one in so many, that may be held for as long as clients like: by
// streams, tunnels and uploads. The others are for pages that come and go.
const heldShare = 2

// maxHeld is how many connections may be held.
func (t *target) maxHeld() int { return max(1, t.maxInUse(false)/heldShare) }

// hold counts the connection of req, which is in use, as held. Where there are too many it waits for one of them to
// end; false = none did. At most half as many wait as may be held: they have connections, too. Orders are limited
// elsewhere.
func (t *target) hold(c *conn, req *Request) bool {
	if c.order || c.held {
		return true
	}
	t.mu.Lock()
	if t.held < t.maxHeld() && t.queue.first(heldLine) == nil {
		t.held++
		c.held = true
	}
	t.mu.Unlock()
	d := t.settings.Load().queueTimeout
	if c.held || d == 0 {
		return c.held
	}
	if req.Owner != nil {
		req.Owner.StepAside()
	}
	_, end := t.wait(&waiter{line: heldLine, conn: c}, d)
	return end == waitServed
}
