package server

import (
	"bytes"
	"net/netip"

	"sluice/internal/octets"
)

// requestLine checks the first line of a request, without its CRLF. It stands at the message's first byte, so that
// offsets in it are offsets in the head.
func (s *scan) requestLine(p *parser, line []byte) Rule {
	first := bytes.IndexByte(line, ' ')
	if first <= 0 {
		return lineRule(line)
	}
	second := bytes.IndexByte(line[first+1:], ' ')
	if second <= 0 {
		return lineRule(line)
	}
	second += first + 1
	if rule := s.version(line[second+1:]); rule != fine {
		return rule
	}
	if rule := checkMethod(line[:first]); rule != fine {
		return rule
	}
	s.targetAt, s.targetEnd = first+1, second
	target := line[first+1 : second]
	if p.limits.LenientTarget {
		s.encoded = encodeHigh(target)
		target = s.rawTarget(line)
	}
	if len(target) > p.limits.Target {
		return targetTooLong
	}
	return s.target(line[:first], target)
}

// lineRule is the rule that a line breaks which has not three words.
func lineRule(line []byte) Rule {
	if rule := checkText(line); rule != fine {
		return rule
	}
	return badRequestLine
}

// version accepts HTTP/1.1 and HTTP/1.0 (RFC 9112, section 2.3). Another pair of digits is a version that is not
// spoken.
func (s *scan) version(v []byte) Rule {
	switch string(v) {
	case "HTTP/1.1":
		return fine
	case "HTTP/1.0":
		s.HTTP10 = true
		return fine
	}
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	if len(v) == 8 && string(v[:5]) == "HTTP/" && digit(v[5]) && v[6] == '.' && digit(v[7]) {
		return unknownVersion
	}
	if rule := checkText(v); rule != fine {
		return rule
	}
	return badVersion
}

// checkMethod accepts every token but two: TRACE would echo secrets, and a gateway has no tunnels for CONNECT.
func checkMethod(m []byte) Rule {
	switch string(m) {
	case "GET", "POST":
		return fine
	case "TRACE":
		return traceMethod
	case "CONNECT":
		return connectMethod
	}
	if !octets.IsToken(m) {
		return badMethod
	}
	return fine
}

// target checks a request target, and stores where its parts stand (RFC 9112, section 3.2).
func (s *scan) target(method, t []byte) Rule {
	at := 0
	switch {
	case t[0] == '/':
	case t[0] == '*':
		if len(t) > 1 || string(method) != "OPTIONS" {
			return badTarget
		}
	default:
		if s.authorityAt = schemeLen(t); s.authorityAt == 0 {
			return badTarget
		}
		at = len(t)
		if end := bytes.IndexAny(t[s.authorityAt:], "/?"); end >= 0 {
			at = s.authorityAt + end
		}
		s.authorityEnd = at
		if checkHost(t[s.authorityAt:at]) != fine {
			return badTarget
		}
	}
	s.pathAt, s.pathEnd = at, len(t)
	if i := bytes.IndexByte(t[at:], '?'); i >= 0 {
		s.pathEnd, s.queryAt = at+i, at+i+1
	}
	return checkTarget(t[at:])
}

// schemeLen is the length of "http://" or "https://" at the start of t, or 0.
func schemeLen(t []byte) int {
	for _, scheme := range [...]string{"http://", "https://"} {
		if octets.HasPrefixFold(t, scheme) {
			return len(scheme)
		}
	}
	return 0
}

// checkTarget checks the bytes of a path and query: visible ASCII without "#", and no escape of NUL, CR or LF. Other
// escapes are not checked: what does not decode is forwarded as it is.
func checkTarget(t []byte) Rule {
	for i, c := range t {
		if classes[c]&targetByte != 0 {
			continue
		}
		if c != '%' {
			return badTarget
		}
		if i+2 < len(t) && t[i+1] == '0' {
			switch octets.Lower(t[i+2]) {
			case '0', 'a', 'd':
				return encodedControl
			}
		}
	}
	return fine
}

// encodeHigh percent-encodes the bytes 0x80 to 0xff of t into a copy; nil when there are none.
func encodeHigh(t []byte) []byte {
	high := 0
	for _, c := range t {
		if c >= 0x80 {
			high++
		}
	}
	if high == 0 {
		return nil
	}
	const digits = "0123456789ABCDEF"
	encoded := make([]byte, 0, len(t)+2*high)
	for _, c := range t {
		if c < 0x80 {
			encoded = append(encoded, c)
		} else {
			encoded = append(encoded, '%', digits[c>>4], digits[c&15])
		}
	}
	return encoded
}

// checkHost checks the value of Host: a name or an address, and perhaps a port. It is narrower than RFC 3986, whose
// names may hold escapes and punctuation that no real host has and that parsers read differently ("@", ",", "%").
func checkHost(h []byte) Rule {
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

// literalLen is the length of the IPv6 address in brackets that h begins with, or 0. Zones are rejected: they mean
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
		if octets.Unhex(c) > 15 && c != ':' && c != '.' {
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
