package listener

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"sluice/limiter"
)

// boundedListener rejects what comes beyond the share of its listener or of one address, so that others are still
// answered.
type boundedListener struct {
	net.Listener
	conns     *limiter.ConnLimiter
	rejecting atomic.Int32
}

// Bounded gives a listener for operators and their machines a share of connections, of which one address has a quarter.
func Bounded(ln net.Listener, share int) net.Listener {
	return &boundedListener{Listener: ln, conns: limiter.NewConnLimiter(share-maxRejecting, max(share/4, 1))}
}

// maxRejecting is how many of a share are for connections that are told that they are too many.
const maxRejecting = 8

const tooMany = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 5\r\n" +
	"Connection: close\r\nContent-Length: 43\r\n\r\ntoo many connections; close some and retry\n"

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, _ := netip.ParseAddrPort(c.RemoteAddr().String()) // of a unix socket none
		if l.conns.Open(from.Addr()) == limiter.Admitted {
			return &boundedConn{c, sync.OnceFunc(func() { l.conns.Close(from.Addr()) })}, nil
		}
		l.reject(c)
	}
}

// reject answers, and reads for a moment what the client had sent: a reset would overtake the answer.
func (l *boundedListener) reject(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(500 * time.Millisecond))
	_, _ = io.WriteString(c, tooMany)
	if l.rejecting.Add(1) > maxRejecting {
		l.rejecting.Add(-1)
		_ = c.Close()
		return
	}
	go func() { // ends within its deadline
		defer l.rejecting.Add(-1)
		defer c.Close()
		if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_, _ = io.CopyN(io.Discard, c, 64<<10)
		}
	}()
}

// boundedConn is counted until it is closed.
type boundedConn struct {
	net.Conn
	left func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.left()
	return c.Conn.Close()
}
