package upstream

import (
	"errors"
	"slices"
	"time"
)

// Why no connection was had.
var (
	errFull    = errors.New("acquire connection: all are in use")
	errRetired = errors.New("acquire connection: target was removed")
	errStale   = errors.New("reuse connection: it has ended, or the upstream has sent bytes that no request asked for")
)

// ready makes a connection out of a place: c where that is not too old, another idle one, or a new one; c may be nil.
// The most recently used comes first: the others may grow old and be closed. fresh asks for a new one; now is the
// clock's, or was a moment ago. With an error the place is given back.
func (t *target) ready(c *conn, req *Request, fresh bool, now time.Duration) (*conn, error) {
	for c != nil {
		if now-c.returnedAt < t.settings.Load().maxIdle {
			return c, nil
		}
		var err error
		if c, err = t.replace(c, fresh); err != nil {
			return nil, err
		}
	}
	if req.Owner != nil {
		req.Owner.StepAside()
	}
	return t.connect(req.Order, fresh)
}

// replace closes c and takes an idle connection in its place; nil = a new one is to be opened there. The place stays in
// use: a request that had one does not wait again. With an error it is given back.
func (t *target) replace(c *conn, fresh bool) (*conn, error) {
	c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.serve()
	t.unhold(c)
	switch {
	case t.retired:
		t.open--
		t.releaseConn(c)
		return nil, errRetired
	case len(t.idle) > 0 && !fresh:
		t.open--
		return t.popLast(c.order), nil
	}
	return nil, nil
}

// The part of a target's connections, one in so many, that only orders may use, and that only other requests ("pages")
// may. Slowly read pages, uploads and tunnels last as long as their clients like; orders are limited elsewhere, but to
// what the upstream can bear and not to the connections of one target.
const (
	orderShare = 4
	pageShare  = 8
)

// maxInUse is how many connections may be in use by orders, or by pages.
func (t *target) maxInUse(order bool) int {
	n := t.settings.Load().maxConns
	if order {
		return n - n/pageShare
	}
	return n - n/orderShare
}

// pop takes a place for a request behind which none waits: an idle connection, or nil where a new one may be opened.
func (t *target) pop(order bool) (*conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue.first(lineOf(order)) != nil {
		return nil, errFull
	}
	return t.take(order)
}

// take takes a place: it removes an idle connection from the list; nil means that a new one may be opened, and has been
// counted. mu is held.
func (t *target) take(order bool) (*conn, error) {
	used := t.inUse(order)
	switch {
	case t.retired:
		return nil, errRetired
	case *used >= t.maxInUse(order):
		return nil, errFull
	case len(t.idle) > 0:
		*used++
		return t.popLast(order), nil
	case t.open >= t.settings.Load().maxConns:
		return nil, errFull
	}
	t.open++
	*used++
	return nil, nil
}

// inUse counts the connections in use by orders, or by pages. mu is held.
func (t *target) inUse(order bool) *int {
	if order {
		return &t.orders
	}
	return &t.pages
}

// popLast removes the last idle connection from the list. mu is held.
func (t *target) popLast(order bool) *conn {
	n := len(t.idle) - 1
	c := t.idle[n]
	t.idle[n], t.idle = nil, t.idle[:n]
	c.order = order
	return c
}

// release puts c back at now, or closes it. It ends the owner's use of c.
func (t *target) release(c *conn, d disposition, now time.Duration) {
	if d == mayReuse {
		c.reset()
		c.returnedAt = now
		if t.push(c) {
			return
		}
	}
	t.drop(c)
}

// giveBack gives back a place that was not used.
func (t *target) giveBack(c *conn, order bool) {
	if c != nil {
		t.release(c, mayReuse, c.returnedAt)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	*t.inUse(order)--
	t.serve()
}

// push puts c back, or gives it to the slow dial that has waited longest; false where c is to be closed: its target was
// removed, there are more than there may be now, or it was verified by rules that no longer hold.
func (t *target) push(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.settings.Load(); t.retired || t.open > s.maxConns || c.tls != s.tls {
		return false
	}
	t.releaseConn(c)
	if len(t.waiting) > 0 {
		t.waiting[0].finishWith(c)
		t.waiting = slices.Delete(t.waiting, 0, 1)
	} else {
		t.idle = append(t.idle, c)
	}
	t.serve()
	return true
}

// endStream ends an exchange whose response was a stream or a tunnel.
func (t *target) endStream(c *conn, d disposition) {
	t.release(c, d, t.clock.now())
	t.counters.inFlight.Add(-1)
}

// drop closes c, which is in use.
func (t *target) drop(c *conn) {
	c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	t.releaseConn(c)
	t.serve()
}

// releaseConn counts c as in use no more. mu is held.
func (t *target) releaseConn(c *conn) {
	*t.inUse(c.order)--
	t.unhold(c)
}

// unhold counts c as held no more. mu is held.
func (t *target) unhold(c *conn) {
	if c.held {
		c.held = false
		t.held--
	}
}

// dropIdle closes connections that were removed from the list of idle ones.
func (t *target) dropIdle(old []*conn) {
	for _, c := range old {
		c.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open -= len(old)
	t.serve()
}

// reap closes what has been idle for too long at now: the upstream is about to close it too.
func (t *target) reap(now time.Duration) {
	t.mu.Lock()
	n := 0
	for n < len(t.idle) && now-t.idle[n].returnedAt >= t.settings.Load().maxIdle {
		n++
	}
	old := slices.Clone(t.idle[:n])
	t.idle = slices.Delete(t.idle, 0, n)
	t.mu.Unlock()
	t.dropIdle(old)
}

// use puts s into force: for exchanges that begin, and for connections that are put back. Connections that were
// verified by other rules are closed, idle ones now. What waits chooses again: there may be other targets.
func (t *target) use(s *settings) {
	old := t.settings.Swap(s)
	if old.tls != s.tls {
		t.mu.Lock()
		idle := t.idle
		t.idle = nil
		t.mu.Unlock()
		t.dropIdle(idle)
	}
	t.moveWaiters()
}

// retire closes the idle connections now, and each other one when its exchange ends.
func (t *target) retire() {
	t.mu.Lock()
	t.retired = true
	old := t.idle
	t.idle = nil
	t.mu.Unlock()
	t.dropIdle(old)
	t.moveWaiters()
}
