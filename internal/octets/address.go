package octets

import (
	"bytes"
	"net/netip"
	"unsafe"
)

// ParseAddr reads an address with or without a port, as proxies write them: 1.2.3.4, 1.2.3.4:5, ::1, [::1]:5. One with
// a zone means something on the machine that wrote it alone.
func ParseAddr(b []byte) (netip.Addr, bool) {
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
