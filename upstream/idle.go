package upstream

import (
	"errors"
	"slices"
	"time"
)

// Why no connection was had.
var (
	errFull    = errors.New("take connection: all are in use")
	errRetired = errors.New("take connection: target was removed")
	errStale   = errors.New("reuse connection: it has ended, or the shop has said what nobody asked for")
)

// take returns an idle connection, which may have ended or spoken since, or opens one. The most recently used comes
// first: the others may grow old and be closed. fresh asks for a new one; now is the clock's, or was a moment ago.
func (t *target) take(order, fresh bool, now time.Duration) (*conn, error) {
	for {
		c, err := t.pop(order, fresh)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return t.connect(order, fresh)
		}
		if now-c.idle < t.maxIdle {
			return c, nil
		}
		t.drop(c)
	}
}

// The part of a target's connections, one in so many, that orders alone may use, and that pages alone may. Pages that are
// read slowly, uploads and tunnels last as long as their clients like, and nothing else limits them; the orders of a sale
// are limited elsewhere, but to what the shop can bear, not to what this target has.
const (
	forOrders = 4
	forPages  = 8
)

// most is how many connections may be in use by orders, or by pages.
func (t *target) most(order bool) int {
	if order {
		return t.maxConns - t.maxConns/forPages
	}
	return t.maxConns - t.maxConns/forOrders
}

// pop takes an idle connection; nil means that a new one may be opened, and has been counted.
func (t *target) pop(order, fresh bool) (*conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.retired {
		return nil, errRetired
	}
	used := t.used(order)
	if *used >= t.most(order) {
		return nil, errFull
	}
	if n := len(t.idle); n > 0 && (!fresh || t.open >= t.maxConns) {
		*used++
		return t.last(order), nil
	}
	if t.open >= t.maxConns {
		return nil, errFull
	}
	t.open++
	*used++
	return nil, nil
}

// popIdle takes an idle connection that is young enough at now; nil = there is none that may be taken.
func (t *target) popIdle(order bool, now time.Duration) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	used, n := t.used(order), len(t.idle)
	if n == 0 || *used >= t.most(order) || now-t.idle[n-1].idle >= t.maxIdle {
		return nil
	}
	*used++
	return t.last(order)
}

// used counts the connections in use by orders, or by pages; under mu.
func (t *target) used(order bool) *int {
	if order {
		return &t.orders
	}
	return &t.pages
}

// last takes the last idle connection off the list; under mu.
func (t *target) last(order bool) *conn {
	n := len(t.idle) - 1
	c := t.idle[n]
	t.idle[n], t.idle = nil, t.idle[:n]
	c.order = order
	return c
}

// ended takes a connection out of use; under mu.
func (t *target) ended(order bool) {
	*t.used(order)--
}

// release puts c back at now, or closes it. It ends the owner's use of c.
func (t *target) release(c *conn, f fate, now time.Duration) {
	if f == keep {
		c.settle()
		c.idle = now
		if t.push(c) {
			return
		}
	}
	t.drop(c)
}

func (t *target) push(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.retired {
		return false
	}
	t.ended(c.order)
	if len(t.slow) > 0 {
		t.slow[0].take(c)
		t.slow = slices.Delete(t.slow, 0, 1)
		return true
	}
	t.idle = append(t.idle, c)
	return true
}

// returned ends an exchange whose answer was a stream.
func (t *target) returned(c *conn, f fate) {
	t.release(c, f, t.clock.now())
	t.counters.inFlight.Add(-1)
}

// drop closes c, which is in use.
func (t *target) drop(c *conn) {
	c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	t.ended(c.order)
}

// dropIdle closes what was idle, and has been taken off the list.
func (t *target) dropIdle(old []*conn) {
	for _, c := range old {
		c.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open -= len(old)
}

// reap closes what has been idle for too long at now: the shop is about to close it too.
func (t *target) reap(now time.Duration) {
	t.mu.Lock()
	n := 0
	for n < len(t.idle) && now-t.idle[n].idle >= t.maxIdle {
		n++
	}
	old := slices.Clone(t.idle[:n])
	t.idle = slices.Delete(t.idle, 0, n)
	t.mu.Unlock()
	t.dropIdle(old)
}

// retire closes the idle connections now, and each other one when its exchange is over.
func (t *target) retire() {
	t.mu.Lock()
	t.retired = true
	old := t.idle
	t.idle = nil
	t.mu.Unlock()
	t.dropIdle(old)
}
