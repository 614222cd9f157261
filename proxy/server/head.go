package server

import (
	"bytes"

	"sluice/internal/octets"
)

// Head is what was learned of a request while its head was checked.
type Head struct {
	ContentLength int64 // bytes; -1 without the field, which means no body unless Chunked
	Chunked       bool  // the body is chunked
	Expect100     bool  // the client waits for 100 before it sends the body; never on HTTP/1.0 (RFC 9110, 10.1.1)
	Upgrade       bool  // Upgrade and Connection ask for another protocol, on a connection that is to stay
	H2C           bool  // "h2c" is among the protocols asked for; it must not be forwarded
	Close         bool  // the connection ends with this request: "close", or HTTP/1.0 without "keep-alive"
	HTTP10        bool  // the version is 1.0
	Named         bool  // Connection names fields, which are for this connection alone
	Via           bool  // a field says through which proxies the request came
	Symbols       bool  // the name of a field has other punctuation than "-"
	Override      bool  // a field asks for another method or path (X-HTTP-Method-Override, X-Original-URL)
}

// noHead is what is known of a request before its head is read.
var noHead = Head{ContentLength: -1}

// scan checks one head line by line, as far as it has come. Offsets count from the head's first byte, so that they
// stay true when the bytes move; those of the target's parts count from the target's first byte.
type scan struct {
	Head
	skipped bool // the one empty line before the request was dropped
	line    int  // offset of the line being read; 0 is the request line
	seen    int  // bytes in which the end of the line was searched

	targetAt, targetEnd       int
	linesAt                   int    // offset of the first header line
	encoded                   []byte // the target with its high bytes percent-encoded; nil = it has none
	authorityAt, authorityEnd int    // of an absolute target; 0 = it is none
	pathAt, pathEnd           int
	queryAt                   int // 0 = there is no query
	hostAt, hostEnd           int // of the value of Host; 0 = there is none
	fields                    []spot

	sawType, sawExpect      bool
	keepAlive, wantsUpgrade bool
}

// spot is where a field stands in the header lines: its name up to the colon, and its value.
type spot struct{ at, colon, from, to uint32 }

// rawTarget is the target as received, or with its high bytes encoded. head begins with the request line.
func (s *scan) rawTarget(head []byte) []byte {
	if s.encoded != nil {
		return s.encoded
	}
	return head[s.targetAt:s.targetEnd]
}

// read goes on with a head that begins at b[0]; b is not empty. Until the head is whole it returns to == 0; from is
// then the number of bytes to drop. When it is whole it stands in b[from:to]. Whatever pieces the bytes come in, the
// result is the same: a line is checked when its end has come, and each limit is a position.
func (s *scan) read(p *parser, b []byte) (from, to int, rule Rule) {
	if s.line == 0 {
		skip, rule := s.begin(b)
		if rule != fine || skip == len(b) {
			return skip, 0, rule
		}
		from, b = skip, b[skip:]
	}
	for {
		end, rule := s.lineEnd(p, b)
		if rule != fine || end == 0 {
			return from, 0, rule
		}
		at := s.line
		s.line, s.seen = end, end
		line := b[at : end-2]
		switch {
		case at == 0:
			s.linesAt = end
			rule = s.requestLine(p, line)
		case len(line) > 0:
			rule = s.field(p, line, at)
		default:
			return from, from + end, s.checkWholeHead(b[:end])
		}
		if rule != fine {
			return from, 0, rule
		}
	}
}

// begin checks the first bytes of a head: the empty line that may come before it (RFC 9112, section 2.2), and whether
// this is HTTP at all, so that TLS on a plain port is rejected at once.
func (s *scan) begin(b []byte) (skip int, rule Rule) {
	for b[0] == '\r' {
		switch {
		case s.skipped:
			return 0, emptyLine
		case len(b) == 1:
			return 0, fine
		case b[1] != '\n':
			return 0, bareCR
		}
		s.skipped = true
		s.seen = 0
		skip, b = 2, b[2:]
		if len(b) == 0 {
			return skip, fine
		}
	}
	switch {
	case b[0] == '\n':
		return 0, bareLF
	case classes[b[0]]&tokenByte == 0:
		return 0, badMethod
	}
	return skip, fine
}

// lineEnd is the offset behind the line's CRLF, or 0 when that has not come yet.
func (s *scan) lineEnd(p *parser, b []byte) (end int, rule Rule) {
	limit, over := p.limits.Header, headerTooLarge
	if s.line == 0 {
		limit, over = p.firstLine, targetTooLong
	}
	view := b[:min(len(b), limit)]
	i := bytes.IndexByte(view[s.seen:], '\n')
	if i < 0 {
		s.seen = len(view)
		if len(view) == limit {
			return 0, over
		}
		return 0, fine
	}
	end = s.seen + i + 1
	if end-2 < s.line || b[end-2] != '\r' {
		return 0, bareLF
	}
	return end, fine
}

// checkWholeHead checks what only a whole head shows, and decides what its options mean together.
func (s *scan) checkWholeHead(head []byte) Rule {
	switch {
	case s.hostAt == 0 && !s.HTTP10:
		return hostMissing
	case s.authorityEnd > 0 &&
		!octets.EqualFold(s.rawTarget(head)[s.authorityAt:s.authorityEnd], head[s.hostAt:s.hostEnd]):
		return targetNotHost
	case s.Chunked && s.ContentLength >= 0:
		return codingAndLength
	case s.Chunked && s.HTTP10:
		return codingOnHTTP10
	}
	if s.HTTP10 {
		s.Close = s.Close || !s.keepAlive
	}
	// RFC 9110, section 7.8: Upgrade is ignored without the option and on HTTP/1.0. On a connection that ends there
	// is no protocol to change to.
	if s.HTTP10 || s.Close || !s.wantsUpgrade {
		s.Upgrade, s.H2C = false, false
	}
	return fine
}
