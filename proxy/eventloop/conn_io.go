//go:build linux && !noeventloop

package eventloop

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// TryRead reads once, without blocking and without regard to deadlines. It returns 0 and no error if there is
// nothing to read, and io.EOF at the end.
func (c *Conn) TryRead(p []byte) (int, error) {
	n, err := c.readOnce(p)
	if err == syscall.EAGAIN {
		return 0, nil
	}
	return n, err
}

// Read implements net.Conn. Where it blocks, the goroutine first steps aside, and then parks on the loop.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := c.checkDeadline(&c.in); err != nil {
		return 0, err
	}
	for {
		if c.mayRead() {
			n, err := c.readOnce(p)
			if err != syscall.EAGAIN {
				return n, err
			}
		}
		if err := c.park(&c.in); err != nil {
			return 0, err
		}
	}
}

// mayRead reports whether a read may find something: no event has told of anything since the last read that emptied the
// socket (epoll(7), edge-triggered). A read in vain costs a system call.
func (c *Conn) mayRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.registered || c.in.ready || c.ended || c.closed
}

func (c *Conn) readOnce(p []byte) (int, error) {
	if err := c.beginCall(&c.in); err != nil {
		return 0, err
	}
	n, err := read(c.fd, p)
	for err == syscall.EINTR {
		n, err = read(c.fd, p)
	}
	c.endCall(n == len(p), err == syscall.EAGAIN)
	switch {
	case err == syscall.EAGAIN:
		return 0, err
	case err != nil:
		return 0, c.opError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn. It writes all of p. Where it blocks, the goroutine first steps aside, and then
// parks on the loop. The deadline applies only to a write that blocks.
func (c *Conn) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if err := c.beginCall(&c.out); err != nil {
			return n, err
		}
		m, err := write(c.fd, p[n:])
		c.endCall(false, false)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			if err := c.park(&c.out); err != nil {
				return n, err
			}
		case err != nil:
			return n, c.opError("write", err)
		default:
			n += m
		}
	}
	return n, nil
}

// CloseWrite sends the end of the stream: nothing more is written.
func (c *Conn) CloseWrite() error {
	if err := c.beginCall(nil); err != nil {
		return err
	}
	err := unix.Shutdown(c.fd, unix.SHUT_WR)
	c.endCall(false, false)
	return os.NewSyscallError("shutdown", err)
}

func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: os.NewSyscallError(op, err)}
}

// beginCall begins a system call: the descriptor stays open until endCall. The call finds out whether d is
// ready, so that only later events count; nil = neither direction.
func (c *Conn) beginCall(d *direction) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.calls++
	if d != nil {
		d.ready = false
	}
	return nil
}

// endCall ends a system call. The last one closes the descriptor of a closed connection. full: a read filled its
// buffer, so more may follow without an event. empty: a read found nothing.
func (c *Conn) endCall(full, empty bool) {
	c.mu.Lock()
	if full {
		c.in.ready = true
	}
	if empty {
		c.ended = false // the read would have returned the end
	}
	c.calls--
	last := c.closed && c.calls == 0
	c.mu.Unlock()
	if last {
		c.loop.remove(c)
		_ = unix.Close(c.fd)
	}
}
