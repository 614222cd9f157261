package server

import (
	"bytes"
	"errors"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"
)

// maxAwaiting bounds the connections whose PROXY header is awaited.
const maxAwaiting = 4096

// acceptProxied reads the PROXY header (v1 or v2, haproxy.org/download/2.9/doc/proxy-protocol.txt) that names the
// client of a connection. It waits in a goroutine of its own: a slow proxy delays no other connection.
func (s *Server) acceptProxied(nc net.Conn, proxy netip.Addr) {
	if s.awaiting.Add(1) > maxAwaiting {
		s.awaiting.Add(-1)
		s.missingHeaders.Add(1)
		_ = nc.Close()
		return
	}
	waiting := newConn(s, nc, proxy) // so that Drain waits for it, or closes it
	s.track(waiting)
	go func() {
		defer s.untrack(waiting)
		defer s.awaiting.Add(-1)
		require := proxyproto.WithPolicy(proxyproto.REQUIRE)
		whole := &headerConn{Conn: nc}
		timeout := proxyproto.SetReadHeaderTimeout(s.options.Load().ReadHeaderTimeout)
		c := proxiedConn{proxyproto.NewConn(whole, require, timeout), nc}
		header := c.ProxyHeader()
		if header == nil {
			s.missingHeaders.Add(1)
			_ = nc.Close()
			return
		}
		peer, named := sourceOf(header, proxy)
		s.admit(c, peer, !named)
	}()
}

// headerConn gives out a PROXY header in one Read, however it arrives. proxyproto reads version 1 in one piece alone.
type headerConn struct {
	net.Conn
	begun bool
}

const maxHeaderV1 = 107 // bytes, "\r\n" included

// Read implements net.Conn. The first call waits for a whole header of version 1; version 2 tells its length, and is
// read as far as that.
func (c *headerConn) Read(p []byte) (n int, err error) {
	if c.begun || len(p) < maxHeaderV1 {
		return c.Conn.Read(p)
	}
	c.begun = true
	for err == nil && n < maxHeaderV1 && incompleteV1(p[:n]) {
		var m int
		m, err = c.Conn.Read(p[n:])
		n += m
	}
	if n > 0 {
		err = nil // it comes again with the next Read
	}
	return n, err
}

// incompleteV1 reports the beginning of a header of version 1 whose end is not there.
func incompleteV1(p []byte) bool {
	const begins = "PROXY "
	return bytes.HasPrefix([]byte(begins), p[:min(len(p), len(begins))]) && bytes.IndexByte(p, '\n') < 0
}

// sourceOf is the client that a PROXY header names. A header of the proxy's own connections, as for health checks, or
// of an unknown, unix or datagram client names none: then the proxy's address counts.
func sourceOf(h *proxyproto.Header, proxy netip.Addr) (client netip.Addr, named bool) {
	if h.Command.IsLocal() {
		return proxy, false
	}
	if a, ok := h.SourceAddr.(*net.TCPAddr); ok {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			return ip.Unmap(), true
		}
	}
	return proxy, false
}

// proxiedConn is a connection behind its PROXY header.
type proxiedConn struct {
	*proxyproto.Conn
	socket net.Conn
}

// CloseWrite ends the server's side; see linger.
func (c proxiedConn) CloseWrite() error {
	if half, ok := c.socket.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
