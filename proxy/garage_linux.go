package proxy

import (
	"net"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A garage waits for the next byte of all parked connections at once: a goroutine for each would be most of what an idle
// shopper costs. It is empty at first. It is safe for concurrent use.
type garage struct {
	mu     sync.Mutex
	epoll  int
	bell   *os.File        // epoll, as Go's own poller knows it: a thread that waited for it would wait for a processor too
	parked map[int32]*Conn // by descriptor; nil = there is no guard, nor an epoll

	// All wait equally long, so that who came first is due first.
	first, last *Conn

	came   int       // since memory was given back
	tidied time.Time // when it last was
}

// stall is a parked connection's place in the garage; its mutex guards it.
type stall struct {
	fd            int32
	due           time.Time
	before, after *Conn
}

// What the HTTP library held for connections that are parked now is garbage, which a gate that has nothing to do would
// keep until the next collection, and its pages for long after. So it is given back once a thousand have come and all
// are quiet, at most once a minute.
const (
	tidyFor   = 1000
	tidyEvery = time.Minute
)

// guardAtMost is how long the garage may wait for a byte before it looks whether it is empty.
const guardAtMost = time.Second

// take parks c for at most patience, which is the same for all. It reports false when c must wait by itself: a connection
// behind TLS may have bytes that are not in the socket any more, and one that ends soon is not worth it.
func (g *garage) take(c *Conn, patience time.Duration) bool {
	if !c.served {
		return false
	}
	tcp, plain := c.Conn.(*net.TCPConn)
	if !plain || patience <= 0 {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.server.closing.Load() || !g.open() { // Drain empties the garage after it has said so
		return false
	}
	c.stall = stall{due: time.Now().Add(patience), before: g.last}
	if raw.Control(func(fd uintptr) { c.stall.fd = int32(fd) }) != nil {
		return false
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: c.stall.fd}
	if unix.EpollCtl(g.epoll, unix.EPOLL_CTL_ADD, int(c.stall.fd), &event) != nil {
		return false
	}
	g.parked[c.stall.fd] = c
	if g.last != nil {
		g.last.stall.after = c
	} else {
		g.first = c
	}
	g.last = c
	g.came++
	return true
}

// open makes the garage where there is none, with its guard. mu is held.
func (g *garage) open() bool {
	if g.parked != nil {
		return true
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return false
	}
	if unix.SetNonblock(fd, true) != nil {
		_ = unix.Close(fd)
		return false
	}
	bell := os.NewFile(uintptr(fd), "garage")
	raw, err := bell.SyscallConn()
	if err != nil || bell.SetReadDeadline(time.Time{}) != nil {
		_ = bell.Close()
		return false
	}
	g.epoll, g.bell, g.parked = fd, bell, make(map[int32]*Conn)
	go g.guard(raw)
	return true
}

// guard wakes those whose next byte has come, and ends those who have waited for too long, until nobody is there.
func (g *garage) guard(bell syscall.RawConn) {
	var events [64]unix.EpollEvent
	for !g.rest() {
		n := 0
		_ = bell.Read(func(fd uintptr) bool { // until the deadline
			n, _ = unix.EpollWait(int(fd), events[:], 0)
			return n != 0
		})
		g.mu.Lock()
		if n == 0 && g.came >= tidyFor && time.Since(g.tidied) >= tidyEvery {
			g.came, g.tidied = 0, time.Now()
			go debug.FreeOSMemory()
		}
		for i := range max(n, 0) {
			if c := g.parked[events[i].Fd]; c != nil {
				g.leave(c)
				go c.await()
			}
		}
		now := time.Now()
		for c := g.first; c != nil && !c.stall.due.After(now); c = g.first {
			g.leave(c)
			go c.resume() // nothing came
		}
		g.mu.Unlock()
	}
}

// rest lets the guard sleep until somebody is due, at most, or go home.
func (g *garage) rest() (empty bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first == nil {
		_ = g.bell.Close()
		g.parked = nil
		return true
	}
	wait := min(time.Until(g.first.stall.due), guardAtMost)
	_ = g.bell.SetReadDeadline(time.Now().Add(wait))
	return false
}

// leave takes c out. mu is held, and the socket is open: whoever is parked is closed by nobody else.
func (g *garage) leave(c *Conn) {
	s := &c.stall
	_ = unix.EpollCtl(g.epoll, unix.EPOLL_CTL_DEL, int(s.fd), nil)
	delete(g.parked, s.fd)
	if s.before != nil {
		s.before.stall.after = s.after
	} else {
		g.first = s.after
	}
	if s.after != nil {
		s.after.stall.before = s.before
	} else {
		g.last = s.before
	}
	*s = stall{}
}

// empty has all wait by themselves.
func (g *garage) empty() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.first != nil {
		c := g.first
		g.leave(c)
		go c.await()
	}
}
