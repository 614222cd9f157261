package listener

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// Reaches reports whether a URL like "http://127.0.0.1:8080" or "unix:/path" leads to a listener of this machine at
// address, such as ":8080". It asks no name server: of names it knows localhost and that of this machine.
func Reaches(target, address string) bool {
	if strings.HasPrefix(target, "unix:") || strings.HasPrefix(address, "unix:") {
		return target == address
	}
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	at, listens, err := net.SplitHostPort(address)
	if err != nil || listens != port || port == "0" {
		return false
	}
	to, ok := addressOf(u.Hostname())
	from, wild := addressOf(at)
	switch {
	case !ok || at != "" && !wild:
		return false
	case at == "" || from.IsUnspecified():
		return isOwn(to)
	}
	return to == from || to.IsUnspecified() && from.IsLoopback()
}

// addressOf is the address of a host on this machine; false where only a name server knows it.
func addressOf(host string) (netip.Addr, bool) {
	name, _ := os.Hostname()
	if strings.EqualFold(host, "localhost") || host != "" && strings.EqualFold(host, name) {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	ip, err := netip.ParseAddr(host)
	return ip.Unmap().WithZone(""), err == nil
}

// isOwn reports whether ip is an address of this machine.
func isOwn(ip netip.Addr) bool {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if own, ok := netip.AddrFromSlice(n.IP); ok && own.Unmap() == ip {
				return true
			}
		}
	}
	return false
}
