package proxy

import (
	"bytes"
	"net"
	"net/netip"
	"unsafe"
)

// peerAddr is the address at the other end of a connection; the zero Addr for a unix socket.
func peerAddr(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		ip, _ := netip.AddrFromSlice(a.IP)
		return ip.Unmap()
	}
	return netip.Addr{}
}

// trusts reports whether what addr says of others is believed. A unix socket is always local.
func (p *Proxy) trusts(addr netip.Addr) bool {
	if !addr.IsValid() {
		return true
	}
	for _, prefix := range p.trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// judge decides whether the peer of c is trusted, once for each Proxy that c meets: a proxy that is no longer trusted must
// not go on to name its clients on connections that it has kept. c is served by one goroutine at a time.
func (p *Proxy) judge(c *Conn) {
	if c.judgedBy != p.generation {
		c.judgedBy, c.trusted = p.generation, p.trusts(c.peer)
	}
}

// clientOf is the first untrusted address on the way here: the peer, unless it is a trusted proxy; then the
// rightmost entry of the header that is not one itself.
func (p *Proxy) clientOf(r *request) netip.Addr {
	peer := r.conn.peer
	if !r.conn.trusted {
		return peer
	}
	// Later lines continue earlier ones (RFC 9110, section 5.3).
	r.scratch = r.scratch[:0]
	for name, value := range r.asked.Fields {
		if equalFold(name, p.clientHeader) {
			r.scratch = append(append(r.scratch, ','), value...)
		}
	}
	if len(r.scratch) == 0 {
		return peer
	}
	return p.rightmostUntrusted(r.scratch[1:], peer)
}

func (p *Proxy) rightmostUntrusted(list []byte, otherwise netip.Addr) netip.Addr {
	found := otherwise
	for len(list) > 0 {
		i := len(list) - 1
		for i >= 0 && list[i] != ',' {
			i--
		}
		addr, ok := parseAddr(trimSpace(list[i+1:]))
		if !ok {
			return found // what stands left of nonsense is not to be believed
		}
		found = addr
		if !p.trusts(addr) {
			return addr
		}
		list = list[:max(i, 0)]
	}
	return found
}

// parseAddr reads an address with or without a port, as proxies write them: 1.2.3.4, 1.2.3.4:5, ::1, [::1]:5. One with a
// zone means something on the machine that wrote it alone.
func parseAddr(b []byte) (netip.Addr, bool) {
	if len(b) == 0 || len(b) > 64 || bytes.IndexByte(b, '%') >= 0 {
		return netip.Addr{}, false
	}
	s := unsafe.String(unsafe.SliceData(b), len(b)) // no copy: what it is part of in an error is dropped here
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Unmap(), true
	}
	if s[0] == '[' && s[len(s)-1] == ']' {
		addr, err := netip.ParseAddr(s[1 : len(s)-1])
		return addr.Unmap(), err == nil
	}
	ap, err := netip.ParseAddrPort(s)
	return ap.Addr().Unmap(), err == nil
}
