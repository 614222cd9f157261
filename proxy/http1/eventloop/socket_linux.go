package eventloop

import (
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is a connection that a loop waits for. As of any net.Conn, one goroutine may read while another writes, sets
// deadlines or closes it.
type Socket struct {
	Owner any // what Serve wants to know of it

	fd   int
	peer netip.AddrPort
	here net.Addr
	loop *Loop
	turn Turn // in which it is served; none = its goroutine does not lead. Belongs to that goroutine

	mu      sync.Mutex
	guest   bool  // see Guest
	held    bool  // by the loop
	resting bool  // what comes is for the leader
	users   int32 // system calls under way
	closed  bool
	ended   bool  // the peer has said its last, or the socket is broken: a read tells, now or later
	due     int64 // the tick at which it has rested for too long; 0 = none
	in, out side
}

// side is what is to be known of one direction.
type side struct {
	news     bool // something has happened since the last call that found nothing to do
	deadline time.Time
	waiter   chan struct{} // whoever waits is woken by it; nil = nobody ever waited
}

// socket is a new one, of the loop whose turn it is.
func (ls *Loops) socket(fd int, peer netip.AddrPort, here net.Addr) *Socket {
	return &Socket{fd: fd, peer: peer, here: here, loop: ls.all[int(ls.next.Add(1))%len(ls.all)]}
}

// Rest lets the socket wait for its next byte, and belong to the loop, for as long as patience, or a quarter of a second
// more; 0 = for ever. It reports false when something has come already: then the caller still owns it, and has to Take.
func (s *Socket) Rest(patience time.Duration) (bool, error) {
	first := !s.held
	s.mu.Lock()
	switch {
	case s.closed, s.stranded():
		s.mu.Unlock()
		return false, net.ErrClosed
	case s.in.news || s.ended:
		s.mu.Unlock()
		return false, nil
	}
	s.due = s.loop.after(patience)
	s.turn = Turn{}
	s.resting = true
	s.mu.Unlock()
	if !first { // from here on it may be another's
		return true, nil
	}
	if err := s.hold(); err != nil { // what has come already is told now
		s.Reclaim()
		return false, err
	}
	return true, nil
}

// Reclaim ends a rest, and reports that there was one: the socket is the caller's then.
func (s *Socket) Reclaim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.resting
	s.resting = false
	return was
}

// after is the tick when d will have gone by; 0 = never.
func (l *Loop) after(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return l.loops.ticks.Load() + 1 + int64((d+tick-1)/tick)
}

// Hurry ends the rest after patience, where it would last longer.
func (s *Socket) Hurry(patience time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.loop.after(patience); s.resting && (s.due == 0 || s.due > at) {
		s.due = at
		s.loop.loops.hurry.Store(true)
	}
}

// StepAside has somebody else lead the loop, where the goroutine that owns the socket does: it is about to wait.
func (s *Socket) StepAside() {
	if t := s.turn; t.loop != nil {
		s.turn = Turn{}
		t.loop.pass(t.no)
	}
}

// hold makes the socket known to its loop, once. Only its owner does, before there are two who wait.
func (s *Socket) hold() error {
	if s.held {
		return nil
	}
	s.held = true
	if err := s.use(); err != nil {
		return err
	}
	err := s.loop.hold(s)
	s.leave(false, nil)
	return err
}

// wake notes what has happened, and reports whether the socket rested: it is the leader's then.
func (s *Socket) wake(events uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		s.ended = true
		s.out.happened()
	}
	if events&unix.EPOLLOUT != 0 {
		s.out.happened()
	}
	if events&unix.EPOLLIN != 0 || s.ended {
		s.in.happened()
		if s.resting {
			s.resting = false
			return true
		}
	}
	return false
}

func (d *side) happened() {
	d.news = true
	d.rouse()
}

func (d *side) rouse() {
	if d.waiter != nil {
		select {
		case d.waiter <- struct{}{}:
		default:
		}
	}
}

// overdue reports that the socket has rested for too long: it is the caller's then.
func (s *Socket) overdue(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.resting || s.due == 0 || now < s.due {
		return false
	}
	s.resting = false
	return true
}

// Take reads what has come, once, without waiting: 0 bytes and no error when there is nothing, io.EOF at the end.
func (s *Socket) Take(p []byte) (int, error) {
	n, err := s.try(p)
	if err == syscall.EAGAIN {
		return 0, nil
	}
	return n, err
}

// Read implements net.Conn.
func (s *Socket) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if err := s.late(&s.in); err != nil {
			return 0, err
		}
		n, err := s.try(p)
		if err != syscall.EAGAIN {
			return n, err
		}
		if err := s.await(&s.in); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// try reads once.
func (s *Socket) try(p []byte) (n int, err error) {
	if err := s.enter(&s.in); err != nil {
		return 0, err
	}
	n, err = read(s.fd, p)
	for err == syscall.EINTR {
		n, err = read(s.fd, p)
	}
	s.leave(n == len(p), err)
	switch {
	case err == syscall.EAGAIN:
		return 0, err
	case err != nil:
		return 0, s.fault("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (s *Socket) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if err := s.enter(&s.out); err != nil {
			return n, err
		}
		m, err := write(s.fd, p[n:])
		s.leave(false, nil)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			if err := s.await(&s.out); err != nil {
				return n, err
			}
		case err != nil:
			return n, s.fault("write", err)
		default:
			n += m
		}
	}
	return n, nil
}

func (s *Socket) fault(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: s.RemoteAddr(), Err: os.NewSyscallError(op, err)}
}

// use begins a system call: the descriptor stays open until leave.
func (s *Socket) use() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.users++
	return nil
}

// enter begins one on d.
func (s *Socket) enter(d *side) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.users++
	d.news = false
	return nil
}

// leave ends a system call. more: a read has left something behind, of which no event will tell.
func (s *Socket) leave(more bool, err error) {
	s.mu.Lock()
	s.users--
	if more {
		s.in.news = true
	}
	if err == syscall.EAGAIN {
		s.ended = false // it cannot be: there would have been an end to be read
	}
	last := s.closed && s.users == 0
	s.mu.Unlock()
	if last {
		s.shut()
	}
}

// CloseWrite says that nothing more will be written.
func (s *Socket) CloseWrite() error {
	if err := s.enter(&s.out); err != nil {
		return err
	}
	err := unix.Shutdown(s.fd, unix.SHUT_WR)
	s.leave(false, nil)
	return os.NewSyscallError("shutdown", err)
}

// Close implements net.Conn. System calls that are under way come to their end first.
func (s *Socket) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return net.ErrClosed
	}
	s.closed = true
	s.resting = false
	s.in.rouse()
	s.out.rouse()
	last := s.users == 0
	s.mu.Unlock()
	if last {
		s.shut()
	}
	return nil
}

// shut closes the descriptor, which nobody uses any more.
func (s *Socket) shut() {
	s.loop.drop(s)
	_ = unix.Close(s.fd)
}
