package upstream

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// trip is the way of a usual request to the shop and of its answer back, on a bare socket: one look, one write, one wait and
// one read, within a single call of Go's poller. Through net.Conn each of them would be a call with locks of its own, and
// the read one in vain: it asks for the answer when the request has only just left.
//
// The kernel is asked without a word to the scheduler. None of these calls waits: the socket does not block.
type trip struct {
	conn *conn
	raw  syscall.RawConn // nil = this is no bare socket
	step func(fd uintptr) bool
	pace func(fd uintptr) // step, for whoever does not wait
	over bool             // what step said last
	next stage
	err  error // of the look, or of the write
}

type stage uint8

const (
	looking stage = iota
	writing
	reading
)

// open readies t, if c is a bare socket.
func (t *trip) open(c *conn) {
	var bare syscall.Conn
	switch s := c.socket.Conn.(type) {
	case *net.TCPConn:
		bare = s
	case *net.UnixConn:
		bare = s
	}
	if bare == nil || c.socket.tls {
		return
	}
	if raw, err := bare.SyscallConn(); err == nil {
		t.conn, t.raw, t.step = c, raw, t.move
		t.pace = func(fd uintptr) { t.over = t.move(fd) }
	}
}

// able reports that run may be called.
func (t *trip) able() bool { return t.raw != nil }

// run writes the connection's request and waits for the answer's first bytes, which are then in its inbox. The error is
// errStale, or that of the write; one of the read is kept for the inbox to tell.
func (t *trip) run() error {
	c := t.conn
	t.next, t.err = looking, nil
	if !c.reused {
		t.next = writing
	}
	c.in.begin()
	err := t.raw.Read(t.step)
	switch {
	case t.err != nil:
		return t.err
	case t.next == reading:
		if err != nil {
			c.in.fault = err
		}
		return nil
	case err != nil:
		return err
	}
	_, err = c.Write(c.out[c.socket.written:]) // the socket's buffer is full
	return err
}

// depart looks at a connection that was used before and writes its request, as far as that needs no waiting, and reports
// whether it is written whole. The error is as run's.
func (t *trip) depart() (whole bool, err error) {
	t.next, t.err = looking, nil
	t.conn.in.begin()
	if err := t.raw.Control(t.pace); err != nil {
		return false, err
	}
	return t.next == reading, t.err
}

// arrive takes what has come of the answer, an end or a fault included, and reports whether anything has.
func (t *trip) arrive() bool { return t.raw.Control(t.pace) != nil || t.over }

// move goes on with the trip, until it is over or has to wait for the shop.
//
// Nothing that the shop says can be overslept: the poller forgets what it was told before it calls move, then the look
// finds the socket silent, and whatever comes from then on wakes the poller up.
func (t *trip) move(fd uintptr) (over bool) {
	c := t.conn
	for {
		switch t.next {
		case looking:
			if _, err := receive(fd, c.one[:], unix.MSG_PEEK); err != unix.EAGAIN {
				t.err = errStale
				return true
			}
			t.next = writing
		case writing:
			n, err := send(fd, c.out)
			c.socket.written += int64(n)
			if err != 0 && err != unix.EAGAIN {
				t.err = os.NewSyscallError("send", err)
			}
			if n < len(c.out) {
				return true
			}
			t.next = reading
			if c.reused {
				return false // what was silent before the request has no answer yet
			}
		case reading:
			n, err := receive(fd, c.in.buf, 0)
			switch {
			case err == unix.EAGAIN:
				return false
			case err != 0:
				c.in.fault = os.NewSyscallError("receive", err)
			case n == 0:
				c.in.fault = io.EOF
			}
			c.in.w = n
			return true
		}
	}
}

func receive(fd uintptr, p []byte, flags uintptr) (int, syscall.Errno) {
	return transfer(unix.SYS_RECVFROM, fd, p, flags)
}

func send(fd uintptr, p []byte) (int, syscall.Errno) {
	return transfer(unix.SYS_SENDTO, fd, p, unix.MSG_NOSIGNAL)
}

// transfer repeats what a signal has interrupted.
func transfer(call, fd uintptr, p []byte, flags uintptr) (int, syscall.Errno) {
	for {
		n, _, err := syscall.RawSyscall6(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags|unix.MSG_DONTWAIT, 0, 0)
		switch err {
		case 0:
			return int(n), 0
		case unix.EINTR:
			continue
		}
		return 0, err
	}
}
