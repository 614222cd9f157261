package main

import (
	"net"
	"net/netip"
	"sync"

	"sluice/limiter"
)

// How many connections operators and their machines may have open to one listener: of all, and of one address. They
// come out of the same file descriptors as those of shoppers.
const (
	mostAside    = 512
	mostAsideOne = 128
)

// asideListener closes at once what comes beyond that, so that others are still answered.
type asideListener struct {
	net.Listener
	conns *limiter.ConnLimiter
}

func bounded(ln net.Listener) net.Listener {
	return asideListener{ln, limiter.NewConnLimiter(mostAside, mostAsideOne)}
}

// Accept implements net.Listener.
func (l asideListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, _ := netip.ParseAddrPort(c.RemoteAddr().String()) // of a unix socket none
		if l.conns.Open(from.Addr()) == limiter.Admitted {
			return &asideConn{c, sync.OnceFunc(func() { l.conns.Close(from.Addr()) })}, nil
		}
		_ = c.Close()
	}
}

// asideConn is counted until it is closed.
type asideConn struct {
	net.Conn
	left func()
}

// Close implements net.Conn.
func (c *asideConn) Close() error {
	c.left()
	return c.Conn.Close()
}
