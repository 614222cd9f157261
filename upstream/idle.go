package upstream

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Why no connection was had.
var (
	errFull    = errors.New("take connection: all are in use")
	errRetired = errors.New("take connection: target was removed")
)

// take returns an idle connection that is open and silent, or opens one. The most recently used comes
// first: the others may grow old and be closed. fresh asks for a new one.
func (t *target) take(order, fresh bool) (*conn, error) {
	for {
		c, err := t.pop(order, fresh)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return t.connect()
		}
		if t.clock.now()-c.idle < t.maxIdle && c.fresh() {
			return c, nil
		}
		t.drop(c)
	}
}

// forOrders is the part of a target's connections, one in so many, that orders alone may use. Pages that are read
// slowly, uploads and tunnels last as long as their clients like, and nothing else limits them.
const forOrders = 4

// pop takes an idle connection; nil means that a new one may be opened, and has been counted.
func (t *target) pop(order, fresh bool) (*conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.retired {
		return nil, errRetired
	}
	if inUse := t.open - len(t.idle); !order && inUse >= t.maxConns-t.maxConns/forOrders {
		return nil, errFull
	}
	if n := len(t.idle); n > 0 && (!fresh || t.open >= t.maxConns) {
		c := t.idle[n-1]
		t.idle[n-1] = nil
		t.idle = t.idle[:n-1]
		return c, nil
	}
	if t.open >= t.maxConns {
		return nil, errFull
	}
	t.open++
	return nil, nil
}

// connect opens the connection that pop has counted.
func (t *target) connect() (*conn, error) {
	c, err := t.dial(context.Background(), t.timeout)
	if err != nil {
		t.mu.Lock()
		t.open--
		t.mu.Unlock()
		t.noteUnreached(err)
		return nil, err
	}
	t.noteReached()
	return c, nil
}

// release puts c back, or closes it. It ends the owner's use of c.
func (t *target) release(c *conn, f fate) {
	if f == keep {
		c.settle()
		c.idle = t.clock.now()
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
	t.idle = append(t.idle, c)
	return true
}

// returned ends an exchange whose answer was a stream.
func (t *target) returned(c *conn, f fate) {
	t.release(c, f)
	t.counters.inFlight.Add(-1)
}

// drop closes c, which is not among the idle ones.
func (t *target) drop(c *conn) {
	c.Close()
	t.mu.Lock()
	t.open--
	t.mu.Unlock()
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
	for _, c := range old {
		t.drop(c)
	}
}

// retire closes the idle connections now, and each other one when its exchange is over.
func (t *target) retire() {
	t.mu.Lock()
	t.retired = true
	old := t.idle
	t.idle = nil
	t.mu.Unlock()
	for _, c := range old {
		t.drop(c)
	}
}
