package listener

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// boundedListener has a share of connections, of which one address has a quarter. A new one that is too many takes the
// place of the one that was not answered for longest: clients that never send their request keep no other out.
type boundedListener struct {
	net.Listener
	share, ofOne int
	mu           sync.Mutex
	open         map[*boundedConn]struct{}
}

// Bounded gives a listener for operators and their machines a share of connections, of which one address has a quarter.
func Bounded(ln net.Listener, share int) net.Listener {
	return &boundedListener{Listener: ln, share: max(share, 1), ofOne: max(share/4, 1),
		open: make(map[*boundedConn]struct{})}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from, _ := netip.ParseAddrPort(nc.RemoteAddr().String()) // of a unix socket none
	c := &boundedConn{Conn: nc, listener: l, from: from.Addr()}
	c.written.Store(time.Now().UnixNano())
	if idlest := l.add(c); idlest != nil {
		_ = idlest.Close()
	}
	return c, nil
}

// add counts c, and returns the connection whose place it takes; nil = there is room.
func (l *boundedListener) add(c *boundedConn) (idlest *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := 0
	for other := range l.open {
		if other.from == c.from {
			same++
		}
	}
	ofOne := c.from.IsValid() && same >= l.ofOne
	if ofOne || len(l.open) >= l.share {
		for other := range l.open {
			if (!ofOne || other.from == c.from) && (idlest == nil || other.written.Load() < idlest.written.Load()) {
				idlest = other
			}
		}
		delete(l.open, idlest)
	}
	l.open[c] = struct{}{}
	return idlest
}

// boundedConn is counted until it is closed.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	from     netip.Addr
	written  atomic.Int64 // when it was answered last, or accepted; Unix ns
}

// Write implements net.Conn.
func (c *boundedConn) Write(b []byte) (int, error) {
	c.written.Store(time.Now().UnixNano())
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
