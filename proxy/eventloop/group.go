//go:build linux && !noeventloop

package eventloop

import (
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Options configure a Group. Serve and Expire are required.
type Options struct {
	// Loops is the number of event loops; 0 = GOMAXPROCS.
	Loops int

	// Serve is called with a connection that waited and became readable, or ended. The callee owns the
	// connection until it calls Wait or Close. It runs on the goroutine that leads the loop, so it may block
	// only after Conn.StepAside.
	Serve func(*Conn)

	// Expire is called with a connection that waited longer than its timeout, in a goroutine of its own. The
	// callee owns the connection. Expire must not call Group.Close.
	Expire func(*Conn)
}

// Group is a set of event loops that share connections evenly. It is safe for concurrent use.
type Group struct {
	options   Options
	loops     []*loop
	assigned  atomic.Uint32 // number of connections so far; selects the loop of the next one
	ticks     atomic.Int64  // number of tickInterval since Open
	sweepTill atomic.Int64  // every tick up to this one sweeps for connections that waited too long
	closed    atomic.Bool
	stop      chan struct{}
	owned     sync.WaitGroup // the ticker's goroutine, and calls of Expire
}

const (
	// tickInterval is the resolution of wait timeouts. A leader that serves one connection for longer is replaced.
	tickInterval = 20 * time.Millisecond

	// sweepEvery is the number of ticks between two sweeps for connections that waited too long.
	sweepEvery = 10
)

// Open starts the loops of a Group. Close ends them. An error means that the system lacks descriptors or memory.
func Open(o Options) (*Group, error) {
	if o.Loops <= 0 {
		o.Loops = runtime.GOMAXPROCS(0)
	}
	g := &Group{options: o, stop: make(chan struct{})}
	for range o.Loops {
		l, err := openLoop(g)
		if err != nil {
			g.Close()
			return nil, err
		}
		g.loops = append(g.loops, l)
		go leadership{loop: l}.lead()
	}
	g.owned.Go(g.tick)
	return g, nil
}

// Close ends the loops and their leaders, and waits for them and for calls of Expire. It does not wait for
// calls of Serve that are under way: their goroutines end when Serve returns. Close does not close connections.
// From then on a Read or Write that would block, and Wait, return net.ErrClosed. Calls after the first return
// at once.
func (g *Group) Close() {
	if g.closed.Swap(true) {
		return
	}
	close(g.stop)
	for _, l := range g.loops {
		l.close()
	}
	g.owned.Wait()
}

// Adopt takes an outgoing TCP connection into the group. It closes c, also on error: the returned Conn has a
// duplicate of its descriptor. A Read that blocks parks its goroutine on the loop; the Conn needs neither Serve
// nor StepAside.
func (g *Group) Adopt(c *net.TCPConn) (*Conn, error) {
	fd, err := duplicate(c)
	local, remote := c.LocalAddr(), c.RemoteAddr()
	_ = c.Close()
	if err != nil {
		return nil, err
	}
	conn := g.newConn(fd, local, remote)
	if err := conn.register(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// duplicate returns a second descriptor of c. It does not block, as the first.
func duplicate(c *net.TCPConn) (dup int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var fault error
	err = raw.Control(func(fd uintptr) { dup, fault = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = os.NewSyscallError("fcntl", fault)
	}
	return dup, err
}

func (g *Group) newConn(fd int, local, remote net.Addr) *Conn {
	l := g.loops[int(g.assigned.Add(1))%len(g.loops)]
	return &Conn{fd: fd, local: local, remote: remote, loop: l}
}

// tick replaces leaders that block, and expires connections that waited too long, until Close.
func (g *Group) tick() {
	t := time.NewTicker(tickInterval)
	defer t.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-t.C:
		}
		now := g.ticks.Add(1)
		sweep := now%sweepEvery == 0 || now <= g.sweepTill.Load()
		for _, l := range g.loops {
			l.replaceBlocked()
			if sweep {
				g.expire(l, now)
			}
		}
	}
}

// expire hands the connections of l that waited too long to Expire.
func (g *Group) expire(l *loop, now int64) {
	var due []*Conn
	for from := 0; from >= 0; {
		due, from = l.overdue(due[:0], from, now)
		for _, c := range due {
			g.owned.Go(func() { g.options.Expire(c) })
		}
	}
}

// tickAfter returns the tick at which d has passed; 0 = never, for a d of 0 or less.
func (g *Group) tickAfter(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return g.ticks.Load() + 1 + int64((d+tickInterval-1)/tickInterval)
}

// sweepUntil makes every tick up to t sweep.
func (g *Group) sweepUntil(t int64) {
	for {
		old := g.sweepTill.Load()
		if old >= t || g.sweepTill.CompareAndSwap(old, t) {
			return
		}
	}
}
