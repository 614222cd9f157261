//go:build linux && !noeventloop

package eventloop

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// loop is one epoll instance with the connections that it watches. One goroutine at a time leads it.
type loop struct {
	group *Group
	index int // in the group's loops
	epoll int
	file  *os.File // epoll in Go's network poller: a thread that blocked in epoll_wait would occupy a processor
	raw   syscall.RawConn
	pause *pause
	bell  *bell // rings in epoll when something is ready that no event told of

	// These belong to the leader.
	poll   func(uintptr) bool // collect
	events [batchSize]unix.EpollEvent
	burst  int // events since epoll_wait returned none, or since the last pause

	mu       sync.Mutex
	conns    []*Conn      // by descriptor
	resumed  []*coroutine // parked ones to be run, the last first
	readable []*Conn      // to be served, the last first
	idle     []*coroutine // that have nothing to serve
	leader   uint64       // number of the current leadership
	serving  bool         // the leader is in Serve
	served   uint64       // calls of Serve
	seen     uint64       // served at the last tick
	closed   bool
	ended    chan struct{} // closed when the leader has seen closed
}

// leadership is the right to lead a loop, from one StepAside to the next.
type leadership struct {
	loop   *loop
	number uint64
}

// batchSize is the number of events of one epoll_wait. The other goroutines of the processor, and later events,
// wait while a batch is served; a smaller batch costs more system calls.
const batchSize = 16

// maxBurst is the number of events after which a leader pauses that has always found more. The pause costs some 5 µs.
const maxBurst = 64

func openLoop(g *Group) (*loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	l := &loop{group: g, index: len(g.loops), epoll: fd, ended: make(chan struct{})}
	l.poll = l.collect
	if l.file, l.raw, err = pollable(fd, "epoll"); err != nil {
		return nil, err
	}
	if l.pause, err = openPause(); err == nil {
		l.bell, err = openBell(fd)
	}
	if err != nil {
		_ = l.file.Close()
		return nil, err
	}
	return l, nil
}

// pollable adds fd to Go's network poller. It closes fd on error.
func pollable(fd int, name string) (*os.File, syscall.RawConn, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(fd), name)
	raw, err := file.SyscallConn()
	if err == nil {
		err = file.SetReadDeadline(time.Time{}) // fails if the poller does not support fd
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, raw, nil
}

// close ends the leadership, and waits until the leader knows unless it is in Serve. Parked goroutines wake up.
func (l *loop) close() {
	l.mu.Lock()
	l.closed = true
	l.readable = nil
	for _, c := range l.conns {
		if c != nil {
			l.resumed = append(l.resumed, c.wakeParked()...)
		}
	}
	serving := l.serving
	l.mu.Unlock()
	_ = l.file.Close()
	l.pause.close()
	l.bell.close()
	if !serving {
		<-l.ended
	}
}

// lead runs the loop until the leadership passes to another goroutine.
func (t leadership) lead() {
	for co := t.loop.next(t); co != nil; co = t.loop.next(t) {
		t.run(co)
	}
}

// next returns the next coroutine to run. It waits for one; nil = the leadership ended.
func (l *loop) next(t leadership) *coroutine {
	for {
		l.mu.Lock()
		if l.leader != t.number {
			l.mu.Unlock()
			return nil
		}
		if co := l.nextCoroutine(); co != nil {
			l.serving = true
			l.served++
			l.mu.Unlock()
			return co
		}
		if l.closed {
			l.leader++
			idle := l.idle
			l.idle = nil
			l.mu.Unlock()
			for _, co := range idle {
				co.stop()
			}
			close(l.ended)
			return nil
		}
		l.serving = false
		l.mu.Unlock()
		l.wait()
	}
}

// nextCoroutine returns a parked coroutine to resume, or an idle or new one that is to serve the next readable
// connection; nil = there is nothing to do. Requests that have begun come first. The caller holds mu.
func (l *loop) nextCoroutine() *coroutine {
	if n := len(l.resumed) - 1; n >= 0 {
		co := l.resumed[n]
		l.resumed[n], l.resumed = nil, l.resumed[:n]
		return co
	}
	c := l.nextReadable()
	if c == nil {
		return nil
	}
	var co *coroutine
	if n := len(l.idle) - 1; n >= 0 {
		co = l.idle[n]
		l.idle[n], l.idle = nil, l.idle[:n]
	} else {
		co = newCoroutine(l.group.options.Serve)
	}
	co.conn, c.server = c, co
	return co
}

// nextReadable returns the next connection to serve; nil = none. The caller holds mu.
func (l *loop) nextReadable() *Conn {
	n := len(l.readable) - 1
	if n < 0 {
		return nil
	}
	c := l.readable[n]
	l.readable[n], l.readable = nil, l.readable[:n]
	return c
}

// wait collects events, until there are coroutines to run or the loop closes. A leader that keeps finding events pauses
// after maxBurst of them, before it serves. Otherwise the goroutines that it woke, and those that wait in Go's
// network poller, would not run until the scheduler preempts the leader: after 10 to 20 ms.
func (l *loop) wait() {
	_ = l.raw.Read(l.poll) // fails when the loop closes
	if l.burst >= maxBurst {
		l.burst = 0
		l.pause.wait()
	}
}

// collect asks the kernel for events without blocking, and reports whether there are connections to serve.
// After false Go's network poller calls it again when there are more events.
func (l *loop) collect(uintptr) bool {
	for {
		n, err := epollWait(l.epoll, l.events[:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			l.burst = 0
			return false
		}
		l.burst += n
		if l.dispatch(l.events[:n]) || l.burst >= maxBurst {
			return true
		}
	}
}

// dispatch wakes goroutines that are parked for the events, and lists what the leader has to resume and to serve.
// It reports whether the leader has to look at the loop: there is something to do, or the loop is closed.
func (l *loop) dispatch(events []unix.EpollEvent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return true
	}
	for i := len(events) - 1; i >= 0; i-- { // next takes from the end
		c := l.conn(events[i].Fd)
		if c == nil {
			continue
		}
		serve, resumed := c.notify(events[i].Events)
		for _, co := range resumed {
			if co != nil {
				l.resumed = append(l.resumed, co)
			}
		}
		if serve {
			l.readable = append(l.readable, c)
		}
	}
	return len(l.resumed)+len(l.readable) > 0
}

// resumeLater lets the leader resume co, and wakes it.
func (l *loop) resumeLater(co *coroutine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resumed = append(l.resumed, co)
	if !l.closed {
		l.bell.ring()
	}
}

// handOver ends a leadership and gives the next to another goroutine. A leader that waits for events keeps it.
func (l *loop) handOver(number uint64) {
	l.mu.Lock()
	l.handOverAndUnlock(l.leader == number)
}

func (l *loop) handOverAndUnlock(due bool) {
	if !due || !l.serving || l.closed {
		l.mu.Unlock()
		return
	}
	l.leader++
	next := leadership{l, l.leader}
	l.serving = false
	l.mu.Unlock()
	go next.lead()
}

// replaceBlocked hands over from a leader that has served one connection since the last tick.
func (l *loop) replaceBlocked() {
	l.mu.Lock()
	blocked := l.served == l.seen
	l.seen = l.served
	l.handOverAndUnlock(blocked)
}

// conn returns the connection of a descriptor; nil = none. The caller holds mu.
func (l *loop) conn(fd int32) *Conn {
	if int(fd) >= len(l.conns) {
		return nil
	}
	return l.conns[fd]
}

// add watches c.
func (l *loop) add(c *Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	for len(l.conns) <= c.fd {
		l.conns = append(l.conns, nil)
	}
	l.conns[c.fd] = c
	const events = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET
	err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
	if err != nil {
		l.conns[c.fd] = nil
	}
	return os.NewSyscallError("epoll_ctl", err)
}

// remove forgets c. The kernel forgets it when the descriptor is closed, which follows.
func (l *loop) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn(int32(c.fd)) == c {
		l.conns[c.fd] = nil
	}
}

// sweepSize is the number of descriptors that one sweep checks before it releases the lock.
const sweepSize = 512

// overdue appends the connections that waited too long to due, from a descriptor on, and resumes what is parked beyond
// its deadline. It returns the descriptor at which to continue; -1 = all are checked.
func (l *loop) overdue(due []*Conn, from int, now int64) ([]*Conn, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to := min(from+sweepSize, len(l.conns))
	for _, c := range l.conns[min(from, to):to] {
		if c == nil {
			continue
		}
		if c.reclaimOverdue(now) {
			due = append(due, c)
		}
		for _, co := range c.wakeOverdue(now) {
			if co != nil {
				l.resumed = append(l.resumed, co)
				l.bell.ring()
			}
		}
	}
	if to == len(l.conns) {
		to = -1
	}
	return due, to
}
