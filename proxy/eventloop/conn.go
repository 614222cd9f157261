//go:build linux && !noeventloop

package eventloop

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a TCP connection that an event loop watches. Many of its methods are those of net.Conn and syscall.Conn.
// Either it waits, and belongs to the loop, or it has an owner that reads and writes. One goroutine may read while
// another writes; any goroutine may set deadlines or close.
type Conn struct {
	// Owner is for the user of the package. It is set before the first Wait.
	Owner any

	fd            int
	local, remote net.Addr
	loop          *loop
	server        *coroutine // that serves it on behalf of a leader; nil = none. Belongs to the goroutine that owns c
	boundTo       *Conn      // in whose coroutine this one is read and written; nil = its own

	mu         sync.Mutex
	registered bool  // the loop watches it
	waiting    bool  // it belongs to the loop
	closed     bool  // by Close
	ended      bool  // the peer sent its end, or the connection broke; a read returns that, now or later
	calls      int32 // system calls under way, for which the descriptor stays open
	due        int64 // tick at which the wait expires; 0 = never
	in, out    direction
}

// Loop is the number of the loop that watches the connection, from 0. What is kept for each loop is written on one
// processor at a time, but for goroutines that have stepped aside.
func (c *Conn) Loop() int { return c.loop.index }

// Wait gives the connection to the loop until it becomes readable, for timeout, or up to 220 ms longer; 0 =
// forever. After true it may be served already. After false the caller still owns it, and there may be
// something to read; err tells whether the connection or the group is closed.
func (c *Conn) Wait(timeout time.Duration) (waiting bool, err error) {
	c.mu.Lock()
	switch {
	case c.closed, c.loop.group.closed.Load():
		c.mu.Unlock()
		return false, net.ErrClosed
	case c.in.ready || c.ended:
		c.mu.Unlock()
		return false, nil
	}
	c.due = c.loop.group.tickAfter(timeout)
	c.server = nil
	c.waiting = true
	registered := c.registered
	c.mu.Unlock()
	if registered { // from here on the connection may have another owner
		return true, nil
	}
	if err := c.register(); err != nil && c.Reclaim() {
		return false, err
	}
	return true, nil
}

// Reclaim ends a wait. It reports whether the connection waited: then the caller owns it, and neither Serve nor
// Expire is called.
func (c *Conn) Reclaim() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waited := c.waiting
	c.waiting = false
	return waited
}

// reclaimOverdue reclaims a connection whose wait has expired at tick now.
func (c *Conn) reclaimOverdue(now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.waiting || c.due == 0 || now < c.due {
		return false
	}
	c.waiting = false
	return true
}

// Expedite lets the wait expire after timeout, or up to 40 ms later, if it would last longer.
func (c *Conn) Expedite(timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.loop.group
	if due := g.tickAfter(timeout); c.waiting && due != 0 && (c.due == 0 || c.due > due) {
		c.due = due
		g.sweepUntil(due)
	}
}

// StepAside has another goroutine lead the loop, if the caller runs on behalf of its leader. Call it in Serve
// before anything that blocks outside of this package, and before another goroutine gets the connection. Read and Write
// of c, and of connections bound to it, need no call.
func (c *Conn) StepAside() {
	co := c.server
	if co == nil {
		return
	}
	c.server = nil
	t := co.leadership
	co.leadership = leadership{}
	t.loop.handOver(t.number)
}

// Detach gives the connection away until Requeue, if give, which lets others call that, reports true. Events are
// recorded, and serve it no sooner.
func (c *Conn) Detach(give func() bool) bool {
	server := c.server
	c.server = nil // from give on it may be served
	if give() {
		return true
	}
	c.server = server
	return false
}

// Requeue has the leader serve a detached connection, as one that became readable. Any goroutine may call it, once.
func (c *Conn) Requeue() {
	l := c.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return // nothing is served any more
	}
	if l.readable = append(l.readable, c); len(l.readable) == 1 {
		l.bell.ring()
	}
}

// Bind says in which goroutine c is read and written from now on: in the one that serves owner, where that is a *Conn;
// else in a goroutine that leads no loop. It is called before each use of an adopted connection.
func (c *Conn) Bind(owner any) { c.boundTo, _ = owner.(*Conn) }

// leading returns the coroutine in which c is read and written, where that runs on behalf of a leader; else nil.
func (c *Conn) leading() *coroutine {
	if c.boundTo != nil {
		c = c.boundTo
	}
	return c.server
}

// register makes the loop watch the connection, from the first wait on.
func (c *Conn) register() error {
	c.mu.Lock()
	if c.closed || c.registered {
		defer c.mu.Unlock()
		if c.closed {
			return net.ErrClosed
		}
		return nil
	}
	c.registered = true
	c.calls++
	c.mu.Unlock()
	err := c.loop.add(c)
	c.mu.Lock()
	if err != nil {
		c.registered = false
	}
	c.mu.Unlock()
	c.endCall(false, false)
	return err
}

// notify records events and wakes what is parked. It reports whether the connection waited, and is to be served, and
// returns the coroutines that the leader has to resume.
func (c *Conn) notify(events uint32) (serve bool, resumed [2]*coroutine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.ended = true
	}
	if events&unix.EPOLLOUT != 0 || c.ended {
		c.out.ready = true
		resumed[0] = c.out.wake()
	}
	if events&unix.EPOLLIN != 0 || c.ended {
		c.in.ready = true
		resumed[1] = c.in.wake()
		serve = c.waiting
		c.waiting = false
	}
	return serve, resumed
}

// wakeParked wakes what is parked in Read and Write, and returns the coroutines that the leader has to resume.
func (c *Conn) wakeParked() (resumed []*coroutine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range []*direction{&c.in, &c.out} {
		if co := d.wake(); co != nil {
			resumed = append(resumed, co)
		}
	}
	return resumed
}

// wakeOverdue is wakeParked of what is parked beyond its deadline at tick now.
func (c *Conn) wakeOverdue(now int64) (resumed [2]*coroutine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, d := range [...]*direction{&c.in, &c.out} {
		if d.parked && d.due != 0 && now >= d.due {
			resumed[i] = d.wake()
		}
	}
	return resumed
}

// rouse wakes what is parked: the connection closed, or its deadlines changed.
func (c *Conn) rouse(directions ...*direction) {
	var resumed [2]*coroutine
	c.mu.Lock()
	for i, d := range directions {
		resumed[i] = d.wake()
	}
	c.mu.Unlock()
	for _, co := range resumed {
		if co != nil {
			c.loop.resumeLater(co)
		}
	}
}

// Close implements net.Conn. It ends a wait without a call of Serve or Expire. The descriptor is closed when
// the system calls that are under way have returned.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return net.ErrClosed
	}
	c.closed = true
	c.waiting = false
	c.calls++
	c.mu.Unlock()
	c.rouse(&c.in, &c.out)
	c.endCall(false, false)
	return nil
}

// LocalAddr implements net.Conn. It is the listener's address for an accepted connection.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SyscallConn implements syscall.Conn. Only Control of the result is supported.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return rawConn{c}, nil }

type rawConn struct{ conn *Conn }

// Control implements syscall.RawConn.
func (r rawConn) Control(f func(fd uintptr)) error {
	if err := r.conn.beginCall(nil); err != nil {
		return err
	}
	defer r.conn.endCall(false, false)
	f(uintptr(r.conn.fd))
	return nil
}

// Read implements syscall.RawConn. It returns errors.ErrUnsupported.
func (rawConn) Read(func(uintptr) bool) error { return errors.ErrUnsupported }

// Write implements syscall.RawConn. It returns errors.ErrUnsupported.
func (rawConn) Write(func(uintptr) bool) error { return errors.ErrUnsupported }
