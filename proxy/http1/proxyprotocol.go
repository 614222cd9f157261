package http1

import (
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
		c := proxiedConn{proxyproto.NewConn(nc, require, proxyproto.SetReadHeaderTimeout(s.ReadHeaderTimeout))}
		header := c.ProxyHeader()
		if header == nil {
			s.missingHeaders.Add(1)
			_ = nc.Close()
			return
		}
		s.admit(c, sourceOf(header, proxy))
	}()
}

// sourceOf is the client that a PROXY header names; the proxy itself for its own health checks.
func sourceOf(h *proxyproto.Header, proxy netip.Addr) netip.Addr {
	if h.Command.IsLocal() {
		return proxy
	}
	if a, ok := h.SourceAddr.(*net.TCPAddr); ok {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			return ip.Unmap()
		}
	}
	return proxy
}

// proxiedConn is a connection behind its PROXY header.
type proxiedConn struct{ *proxyproto.Conn }

// CloseWrite ends the server's side; see linger.
func (c proxiedConn) CloseWrite() error {
	if half, ok := c.Raw().(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
