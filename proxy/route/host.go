package route

import (
	"sluice/internal/octets"
)

// HostName appends the name in a Host field in lower case, without port and final dot.
func HostName(dst, host []byte) []byte {
	name, _ := octets.Cut(host, ':')
	if len(host) > 0 && host[0] == '[' { // an IPv6 address has colons
		if literal, _ := octets.Cut(host, ']'); len(literal) < len(host) {
			name = host[:len(literal)+1]
		}
	}
	if n := len(name); n > 0 && name[n-1] == '.' {
		name = name[:n-1]
	}
	at := len(dst)
	dst = append(dst, name...)
	for i, c := range name {
		dst[at+i] = octets.Lower(c)
	}
	return dst
}
