package proxy

import (
	"crypto/tls"
	"net"
	"syscall"
)

// Gone reports that the client has closed the connection, or at least its side of it: a client that waits for an answer
// does neither, and nginx takes both for leaving too. It does not wait. Where the system cannot tell, nobody is ever gone.
func (c *Conn) Gone() bool {
	if c.raw == nil {
		c.raw = rawOf(c.Conn)
		if c.raw == nil {
			return false
		}
	}
	gone := false
	err := c.raw.Control(func(fd uintptr) { gone = hungUp(fd) })
	return err != nil || gone
}

// rawOf finds the socket below TLS and PROXY protocol; nil = there is none.
func rawOf(c net.Conn) syscall.RawConn {
	if t, secure := c.(*tls.Conn); secure {
		c = t.NetConn()
	}
	if p, behind := c.(proxied); behind {
		c = p.Raw()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
