package proxy

import (
	"errors"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"
)

// maxProving bounds the connections whose PROXY header is awaited.
const maxProving = 4096

// takeProxied learns from the PROXY header (v1 or v2, haproxy.org/download/2.9/doc/proxy-protocol.txt) who is behind a
// connection from a trusted proxy. It waits in a goroutine of its own: a proxy that dawdles holds up nobody else.
func (s *Server) takeProxied(nc net.Conn) {
	if s.proving.Add(1) > maxProving {
		s.proving.Add(-1)
		s.unproven.Add(1)
		_ = nc.Close()
		return
	}
	waiting := &Conn{Conn: nc, server: s} // so that a drain awaits it, or cuts it off
	s.hold(waiting)
	go func() {
		defer s.forget(waiting)
		defer s.proving.Add(-1)
		c := proxied{proxyproto.NewConn(nc, proxyproto.WithPolicy(proxyproto.REQUIRE), proxyproto.SetReadHeaderTimeout(s.ReadHeaderTimeout))}
		header := c.ProxyHeader()
		if header == nil {
			s.unproven.Add(1)
			_ = nc.Close()
			return
		}
		s.admit(c, sourceOf(header, peerAddr(nc)))
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

// proxied is a connection behind its PROXY header.
type proxied struct{ *proxyproto.Conn }

// CloseWrite ends what we send; see linger.
func (c proxied) CloseWrite() error {
	if half, ok := c.Raw().(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
