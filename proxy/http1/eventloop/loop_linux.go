package eventloop

import (
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Loops share the sockets of a server among them. They are safe for concurrent use.
type Loops struct {
	all   []*Loop
	next  atomic.Uint32
	ticks atomic.Int64 // since Open
	hurry atomic.Bool  // somebody who rests is due before long
	over  atomic.Bool  // closed
	stop  chan struct{}
	ended sync.WaitGroup // the watch
	once  sync.Once
}

// Loop is one of them.
type Loop struct {
	Options
	loops *Loops
	epoll int
	bell  *os.File // epoll, as Go's own poller knows it: a thread that waited for it would wait for a processor too
	ring  syscall.RawConn

	// Of the one who waits for events.
	look   func(uintptr) bool // lookAt
	events [atOnce]unix.EpollEvent
	n      int // of them

	mu      sync.Mutex
	sockets []*Socket // by descriptor
	came    []*Socket // woken, and served by nobody yet
	turn    uint64    // of the one who leads
	serving bool      // the leader serves; else it waits for events
	served  uint64    // sockets
	seen    uint64    // served, when it was last looked
	closed  bool
}

// Turn is the leadership of a loop, from one StepAside to the next.
type Turn struct {
	loop *Loop
	no   uint64
}

// atOnce is how many events are taken in one call, and so how long the last of them waits for the others.
const atOnce = 64

// Open starts the loops. They end with Close.
func Open(o Options) (*Loops, error) {
	n := o.Loops
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	if o.Lead == nil {
		o.Lead = func(t Turn) { go t.Lead() }
	}
	ls := &Loops{stop: make(chan struct{})}
	for range n {
		l, err := open(ls, o)
		if err != nil {
			ls.Close()
			return nil, err
		}
		ls.all = append(ls.all, l)
	}
	ls.ended.Go(ls.watch)
	for _, l := range ls.all {
		l.Options.Lead(Turn{l, 0})
	}
	return ls, nil
}

func open(ls *Loops, o Options) (*Loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	l := &Loop{Options: o, loops: ls, epoll: fd, bell: os.NewFile(uintptr(fd), "epoll")}
	l.look = l.lookAt
	if l.ring, err = l.bell.SyscallConn(); err == nil {
		err = l.bell.SetReadDeadline(time.Time{}) // fails where Go's poller does not know it
	}
	if err != nil {
		_ = l.bell.Close()
		return nil, err
	}
	return l, nil
}

// Close ends the loops; who leads ends when he has served. Sockets that rest are forgotten, not closed; the rest of guests expires.
func (ls *Loops) Close() {
	ls.once.Do(func() {
		close(ls.stop)
		ls.over.Store(true)
		for _, l := range ls.all {
			l.mu.Lock()
			l.closed = true
			l.mu.Unlock()
			_ = l.bell.Close()
			l.release()
		}
	})
	ls.ended.Wait()
}

// Lead serves the loop until somebody else has the turn.
func (t Turn) Lead() {
	l := t.loop
	for s := l.take(t); s != nil; s = l.take(t) {
		s.turn = t
		l.Serve(s)
	}
}

// take is the next socket to be served, waiting for it; nil = the turn is over.
func (l *Loop) take(t Turn) *Socket {
	l.mu.Lock()
	for {
		if l.turn != t.no || l.closed {
			l.mu.Unlock()
			return nil
		}
		if n := len(l.came) - 1; n >= 0 {
			s := l.came[n]
			l.came[n], l.came = nil, l.came[:n]
			l.serving = true
			l.served++
			l.mu.Unlock()
			return s
		}
		l.serving = false
		l.mu.Unlock()
		l.wait()
		l.mu.Lock()
		for i := l.n - 1; i >= 0 && !l.closed; i-- { // the first is taken first, from the end
			if s := l.at(l.events[i].Fd); s != nil && s.wake(l.events[i].Events) {
				l.came = append(l.came, s)
			}
		}
	}
}

// wait has n tell how many events have come, as soon as there are some; 0 when the loop is closed.
func (l *Loop) wait() {
	if l.n = 0; l.ring.Read(l.look) != nil {
		l.n = 0
	}
}

// lookAt asks the kernel for events, and reports whether there are some.
func (l *Loop) lookAt(epoll uintptr) bool {
	n, err := waiting(int(epoll), l.events[:])
	if err != nil { // interrupted
		n = 0
	}
	l.n = n
	return n > 0
}

// pass ends a turn, and gives the next to somebody else. A leader who waits for events keeps it: what he gets would be left lying.
func (l *Loop) pass(no uint64) {
	l.mu.Lock()
	mine := l.turn == no
	l.passUnlock(mine)
}

// passUnlock does so if it is to be, and unlocks mu.
func (l *Loop) passUnlock(due bool) {
	if !due || !l.serving || l.closed {
		l.mu.Unlock()
		return
	}
	l.turn++
	next := Turn{l, l.turn}
	l.serving = false
	l.mu.Unlock()
	l.Options.Lead(next)
}

// at is the socket of a descriptor. mu is held.
func (l *Loop) at(fd int32) *Socket {
	if int(fd) >= len(l.sockets) {
		return nil
	}
	return l.sockets[fd]
}

// hold makes s known to the loop and to the kernel.
func (l *Loop) hold(s *Socket) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	for len(l.sockets) <= s.fd {
		l.sockets = append(l.sockets, nil)
	}
	l.sockets[s.fd] = s
	event := unix.EpollEvent{Events: s.wanted(), Fd: int32(s.fd)}
	err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, s.fd, &event)
	if err != nil {
		l.sockets[s.fd] = nil
	}
	return os.NewSyscallError("epoll_ctl", err)
}

// drop forgets s, whose descriptor is about to be closed.
func (l *Loop) drop(s *Socket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at(int32(s.fd)) == s {
		l.sockets[s.fd] = nil
	}
}

// watch takes the turn from leaders who wait and have not said so, and ends the rest of those who have rested for too long.
func (ls *Loops) watch() {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ls.stop:
			return
		case <-t.C:
		}
		now := ls.ticks.Add(1)
		for _, l := range ls.all {
			l.retake()
			if now%expireEvery == 0 || ls.hurry.Load() {
				l.expire(now)
			}
		}
	}
}

// expireEvery is how many ticks somebody may rest for too long, unless he was told to hurry.
const expireEvery = 10

// retake passes the turn of a leader that has served one and the same socket since the last tick.
func (l *Loop) retake() {
	l.mu.Lock()
	stuck := l.served == l.seen
	l.seen = l.served
	l.passUnlock(stuck)
}

// expire has those served who are due.
func (l *Loop) expire(now int64) {
	var due []*Socket
	for from := 0; from >= 0; {
		due, from = l.overdue(due[:0], from, now)
		for _, s := range due {
			l.Expire(s)
		}
	}
}

// stretch is how many sockets are looked at before the leader may go on.
const stretch = 512

// overdue adds those who are due, from a descriptor on, and tells where to go on; -1 = nowhere.
func (l *Loop) overdue(due []*Socket, from int, now int64) ([]*Socket, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to := min(from+stretch, len(l.sockets))
	for _, s := range l.sockets[min(from, to):to] {
		if s != nil && s.overdue(now) {
			due = append(due, s)
		}
	}
	if to == len(l.sockets) {
		to = -1
	}
	return due, to
}
