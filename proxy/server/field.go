package server

import (
	"strings"

	"sluice/internal/octets"
)

// field checks one header line, without its CRLF, that begins at offset at of the head (RFC 9112, section 5).
func (s *scan) field(p *parser, line []byte, at int) Rule {
	var seen class
	n := 0
	for n < len(line) {
		c := classes[line[n]]
		if c&tokenByte == 0 {
			break
		}
		seen |= c
		n++
	}
	if n == 0 || n == len(line) || line[n] != ':' {
		return nameRule(line, n)
	}
	name, value := line[:n], line[n+1:]
	if rule := checkText(value); rule != fine {
		return rule
	}
	if seen&symbolByte != 0 {
		if s.Symbols = true; imitatesHopField(name) {
			return underscoreAlias
		}
	}
	from, to := 0, len(value) // within its optional white space
	for from < to && (value[from] == ' ' || value[from] == '\t') {
		from++
	}
	for from < to && (value[to-1] == ' ' || value[to-1] == '\t') {
		to--
	}
	in := at - s.linesAt
	s.fields = append(s.fields, spot{uint32(in), uint32(in + n), uint32(in + n + 1 + from), uint32(in + n + 1 + to)})
	return s.readField(p, name, value[from:to], at+n+1+from)
}

// nameRule is the rule that a line breaks whose name ends, without a colon, at n.
func nameRule(line []byte, n int) Rule {
	switch {
	case n == len(line):
		return badName // no colon
	case line[n] == ' ' || line[n] == '\t':
		if n == 0 {
			return obsFold
		}
		return spaceInName
	case classes[line[n]]&textByte == 0:
		return controlRule(line[n])
	}
	return badName
}

// readField reads what matters for framing and routing out of a field, and rejects what may stand only once. The length
// of the name tells most fields apart at once. at is the offset of the value in the head.
func (s *scan) readField(p *parser, name, value []byte, at int) Rule {
	is := func(known string) bool { return octets.EqualFold(name, known) }
	switch len(name) {
	case len("via"):
		s.Via = s.Via || is("via")
	case len("host"):
		switch {
		case !is("host"):
		case s.hostAt > 0:
			return hostTwice
		default:
			s.hostAt, s.hostEnd = at, at+len(value)
			return checkHost(value)
		}
	case len("expect"):
		if is("expect") {
			return s.expect(value)
		}
	case len("upgrade"): // and "trailer"
		if is("trailer") {
			return trailer
		}
		if is("upgrade") {
			s.upgrade(value)
		}
	case len("connection"):
		if is("connection") {
			return s.connection(p, value)
		}
	case len("content-type"):
		// Of two, one server believes the first and another the last, and they would read different fields out of the
		// same body.
		if is("content-type") {
			if s.sawType {
				return contentTypeTwice
			}
			s.sawType = true
		}
	case len("content-length"):
		switch {
		case !is("content-length"):
			s.override(name)
		case s.ContentLength >= 0:
			return lengthTwice
		default:
			if s.ContentLength = octets.Length(value); s.ContentLength < 0 {
				return badLength
			}
		}
	case len("transfer-encoding"):
		switch {
		case !is("transfer-encoding"):
			s.override(name)
		case s.Chunked:
			return codingTwice
		case !octets.EqualFold(value, "chunked"):
			return badCoding // than the one that all servers know
		default:
			s.Chunked = true
		}
	case len("x-http-method"), len("x-http-method-override"):
		s.override(name)
	}
	return fine
}

// overrides are fields out of which some frameworks read the method or the path.
var overrides = [...]string{
	"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url",
}

func (s *scan) override(name []byte) {
	for _, known := range overrides {
		s.Override = s.Override || octets.EqualFieldName(name, known)
	}
}

// expect accepts the one expectation there is (RFC 9110, section 10.1.1). On HTTP/1.0 it is ignored.
func (s *scan) expect(value []byte) Rule {
	if s.sawExpect || !octets.EqualFold(value, "100-continue") {
		return badExpectation
	}
	s.sawExpect = true
	s.Expect100 = !s.HTTP10
	return fine
}

// connection reads the options of one Connection line. Several lines are one list (RFC 9110, section 5.3).
func (s *scan) connection(p *parser, value []byte) Rule {
	if octets.EqualFold(value, "keep-alive") { // nearly always
		s.keepAlive = true
		return fine
	}
	for len(value) > 0 {
		option, rest := octets.Cut(value, ',')
		value = rest
		if option = octets.Trim(option); len(option) == 0 {
			continue // RFC 9110, section 5.6.1: empty elements are ignored
		}
		switch {
		case octets.EqualFold(option, "close"):
			s.Close = true
		case octets.EqualFold(option, "keep-alive"):
			s.keepAlive = true
		case octets.EqualFold(option, "upgrade"):
			s.wantsUpgrade = true
		case !octets.IsToken(option):
			return badConnection
		case p.protects(option):
			return connectionNamesHeader
		default:
			s.Named = true
		}
	}
	return fine
}

// upgrade reads the protocols of one Upgrade line.
func (s *scan) upgrade(value []byte) {
	for len(value) > 0 {
		protocol, rest := octets.Cut(value, ',')
		value = rest
		name, _ := octets.Cut(octets.Trim(protocol), '/')
		if len(name) == 0 {
			continue
		}
		s.Upgrade = true
		if octets.EqualFold(name, "h2c") {
			s.H2C = true
		}
	}
}

// endToEnd are fields that handler and upstream rely on: a Connection field that names one would have a hop remove
// it. A name that ends in "-" stands for all that begin so.
var endToEnd = [...]string{
	"host", "content-", "transfer-encoding", "expect", "trailer",
	"cookie", "authorization", "idempotency-key", "origin", "referer",
	"forwarded", "via", "x-forwarded-", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip",
	"cf-connecting-ip", "x-original-", "x-rewrite-url", "x-http-method", "x-http-method-override", "x-method-override",
	"x-request-id",
}

// hopFields are the fields of framing and of one hop, which no other spelling may imitate.
var hopFields = [...]string{
	"host", "content-length", "transfer-encoding", "expect", "trailer", "connection", "proxy-connection", "keep-alive",
	"te", "upgrade", "proxy-authorization", "proxy-authenticate", "http2-settings",
}

// protects reports whether a Connection option names a field that must arrive.
func (p *parser) protects(option []byte) bool {
	return matches(option, endToEnd[:]) || matches(option, p.limits.Protected)
}

// imitatesHopField reports whether name, which holds a byte other than letters, digits and "-", becomes a hop field
// once a server folds punctuation into "_" and then takes "_" for "-", as CGI, WSGI and PHP do.
func imitatesHopField(name []byte) bool { return matches(name, hopFields[:]) }

// matches reports whether some server reads name as one of names, or as one that begins like one that ends in "-".
func matches(name []byte, names []string) bool {
	for _, n := range names {
		if octets.EqualFieldName(name, n) {
			return true
		}
		if strings.HasSuffix(n, "-") && len(name) >= len(n) && octets.EqualFieldName(name[:len(n)], n) {
			return true
		}
	}
	return false
}
