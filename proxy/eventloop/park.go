//go:build linux && !noeventloop

package eventloop

import (
	"net"
	"os"
	"time"
)

// direction is the state of reading, or of writing. The connection's mutex protects it.
type direction struct {
	ready    bool // an event came since the last system call that found out
	parked   bool // co is parked, or a goroutine receives from waiter
	co       *coroutine
	waiter   chan struct{} // nil = no goroutine of its own ever parked
	deadline time.Time
	due      int64 // tick of the deadline, while parked; 0 = none
}

// wake wakes what is parked: a goroutine of its own at once; a coroutine is returned, for a leader to resume it.
func (d *direction) wake() *coroutine {
	if !d.parked {
		return nil
	}
	d.parked = false
	if co := d.co; co != nil {
		d.co = nil
		return co
	}
	d.waiter <- struct{}{} // does not block: it has room for one, and a parked goroutine gets one
	return nil
}

// park blocks until d is ready. The error is net.ErrClosed if the connection or the group is closed, and
// os.ErrDeadlineExceeded at the deadline, or up to 40 ms later; where the deadline is far, up to 220 ms later.
func (c *Conn) park(d *direction) error {
	for {
		if err := c.register(); err != nil {
			return err
		}
		if co := c.leading(); co != nil {
			return co.park(c, d)
		}
		parked, err := c.beginPark(d, nil)
		if !parked {
			return err
		}
		<-d.waiter
	}
}

// nearDeadline is how far a deadline may be for every tick to look at it.
const nearDeadline = time.Second

// beginPark records what waits for d, co or else a goroutine of its own, unless there is no reason to block any more.
func (c *Conn) beginPark(d *direction, co *coroutine) (parked bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.loop.group
	switch {
	case c.closed, g.closed.Load():
		return false, net.ErrClosed
	case d.ready:
		return false, nil
	}
	due := int64(0)
	if !d.deadline.IsZero() {
		left := time.Until(d.deadline)
		if left <= 0 {
			return false, os.ErrDeadlineExceeded
		}
		if due = g.tickAfter(left); left <= nearDeadline {
			g.sweepUntil(due)
		}
	}
	d.due = due
	if d.co = co; co == nil && d.waiter == nil {
		d.waiter = make(chan struct{}, 1)
	}
	d.parked = true
	return true, nil
}

// checkDeadline returns os.ErrDeadlineExceeded after d's deadline.
func (c *Conn) checkDeadline(d *direction) error {
	c.mu.Lock()
	deadline := d.deadline
	c.mu.Unlock()
	if !deadline.IsZero() && !time.Now().Before(deadline) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn. It does not end a wait.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.in, t) }

// SetWriteDeadline implements net.Conn. A write that does not block ignores the deadline.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.out, t) }

func (c *Conn) setDeadline(d *direction, t time.Time) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return net.ErrClosed
	}
	d.deadline = t
	parked := d.parked
	c.mu.Unlock()
	if parked { // it parks again, until the new deadline
		c.rouse(d)
	}
	return nil
}
