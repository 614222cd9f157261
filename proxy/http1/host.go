package http1

import "net/netip"

// checkHost judges the value of Host: a name or an address, and perhaps a port. It is narrower than RFC 3986, whose
// names may hold escapes and punctuation that no real host has and that parsers read differently ("@", ",", "%").
func checkHost(h []byte) Kind {
	if len(h) == 0 {
		return hostEmpty
	}
	n := 0
	if h[0] == '[' {
		n = literalLen(h)
	} else {
		for n < len(h) && classes[h[n]]&hostByte != 0 {
			n++
		}
	}
	if n == 0 || !isPort(h[n:]) {
		return badHost
	}
	return fine
}

// literalLen is the length of the IPv6 address in brackets that h begins with, or 0. Zones are refused: they mean
// something on one machine only.
func literalLen(h []byte) int {
	for i, c := range h[1:] {
		if c == ']' {
			addr, err := netip.ParseAddr(string(h[1 : 1+i]))
			if err != nil || !addr.Is6() {
				return 0
			}
			return i + 2
		}
		if classes[c]&hexByte == 0 && c != ':' && c != '.' {
			return 0
		}
	}
	return 0
}

// isPort reports whether p is empty or ":" and a port of 0 to 65535.
func isPort(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	if p[0] != ':' || len(p) < 2 || len(p) > 6 {
		return false
	}
	port := 0
	for _, c := range p[1:] {
		if c < '0' || c > '9' {
			return false
		}
		port = port*10 + int(c-'0')
	}
	return port <= 65535
}

// equal reports whether a is b but for the case of ASCII letters.
func equal[S []byte | string](a []byte, b S) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if c != b[i] && lower(c) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
