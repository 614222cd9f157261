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
	parked   bool // a goroutine receives from waiter
	deadline time.Time
	waiter   chan struct{} // nil = no goroutine ever parked
	timer    *time.Timer   // wakes the parked goroutine at the deadline; nil = none ever did
}

// wake wakes the goroutine that is parked, if there is one.
func (d *direction) wake() {
	if d.parked {
		d.parked = false
		d.waiter <- struct{}{} // does not block: it has room for one, and a parked goroutine gets one
	}
}

func (d *direction) stopTimer() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

// park blocks until d is ready. The error is net.ErrClosed if the connection or the group is closed, and
// os.ErrDeadlineExceeded at the deadline.
func (c *Conn) park(d *direction) error {
	c.StepAside()
	for {
		if err := c.register(); err != nil {
			return err
		}
		parked, err := c.beginPark(d)
		if !parked {
			return err
		}
		<-d.waiter
	}
}

// beginPark lets the caller receive from d's waiter, unless there is no reason to block any more.
func (c *Conn) beginPark(d *direction) (parked bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.stopTimer()
	switch {
	case c.closed, c.loop.group.closed.Load():
		return false, net.ErrClosed
	case d.ready:
		return false, nil
	}
	if !d.deadline.IsZero() {
		left := time.Until(d.deadline)
		switch {
		case left <= 0:
			return false, os.ErrDeadlineExceeded
		case d.timer == nil:
			d.timer = time.AfterFunc(left, func() { c.mu.Lock(); d.wake(); c.mu.Unlock() })
		default:
			d.timer.Reset(left)
		}
	}
	if d.waiter == nil {
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
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	d.deadline = t
	d.wake() // the goroutine parks again, until the new deadline
	return nil
}
