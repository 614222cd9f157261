package server

import "sluice/internal/octets"

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
	if seen&symbolByte != 0 && imitatesHopField(name) {
		return underscoreAlias
	}
	from, to := inner(value)
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
	switch len(name) {
	case len("via"):
		s.Via = s.Via || octets.EqualFold(name, "via")
	case len("host"):
		if octets.EqualFold(name, "host") {
			return s.host(value, at)
		}
	case len("expect"):
		if octets.EqualFold(name, "expect") {
			return s.expect(value)
		}
	case len("upgrade"):
		if octets.EqualFold(name, "upgrade") {
			s.upgrade(value)
			return fine
		}
		if octets.EqualFold(name, "trailer") {
			return trailer
		}
	case len("connection"):
		if octets.EqualFold(name, "connection") {
			return s.connection(p, value)
		}
	case len("content-type"):
		if octets.EqualFold(name, "content-type") {
			return s.contentType()
		}
	case len("content-length"):
		if octets.EqualFold(name, "content-length") {
			return s.length(value)
		}
		s.override(name)
	case len("transfer-encoding"):
		if octets.EqualFold(name, "transfer-encoding") {
			return s.coding(value)
		}
		s.override(name)
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

// host checks Host's value and stores where it stands.
func (s *scan) host(value []byte, at int) Rule {
	if s.hostAt > 0 {
		return hostTwice
	}
	s.hostAt, s.hostEnd = at, at+len(value)
	return checkHost(value)
}

// length accepts Content-Length once.
func (s *scan) length(value []byte) Rule {
	if s.ContentLength >= 0 {
		return lengthTwice
	}
	if s.ContentLength = octets.Length(value); s.ContentLength < 0 {
		return badLength
	}
	return fine
}

// contentType accepts Content-Type once. Of two, one server believes the first and another the last, and they would
// read different fields out of the same body.
func (s *scan) contentType() Rule {
	if s.sawType {
		return contentTypeTwice
	}
	s.sawType = true
	return fine
}

// coding accepts the one transfer coding that all servers know, once.
func (s *scan) coding(value []byte) Rule {
	if s.Chunked {
		return codingTwice
	}
	if !octets.EqualFold(value, "chunked") {
		return badCoding
	}
	s.Chunked = true
	return fine
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
