package http1

import "bytes"

// Head is what was learned of a request while its head was judged.
type Head struct {
	ContentLength int64 // bytes; -1 without the field, which means no body unless Chunked
	Chunked       bool  // the body is chunked
	Expect100     bool  // the client waits for 100 before it sends the body
	Upgrade       bool  // another protocol is asked for, by Upgrade and by Connection, on a connection that is to stay
	H2C           bool  // "h2c" is among the protocols asked for; it must not be passed on
	Close         bool  // the connection ends with this request: "close" in Connection, or HTTP/1.0 without "keep-alive"
	HTTP10        bool  // the version is 1.0
	Named         bool  // Connection names fields, which are for this connection alone
	Override      bool  // a field asks to take the request for one of another method or path (X-HTTP-Method-Override, X-Original-URL)
}

// noHead is what is known of a request before its head is read.
var noHead = Head{ContentLength: -1}

// scan judges one head line by line, as far as it has come. Offsets count from the head's first byte, so that they
// stay true when the bytes move.
type scan struct {
	Head
	skipped bool // the one empty line before the request was dropped
	line    int  // offset of the line being read; 0 is the request line
	seen    int  // bytes in which the end of the line was looked for

	methodAt, methodEnd       int
	targetAt, targetEnd       int
	authorityAt, authorityEnd int // of an absolute target
	hostAt, hostEnd           int
	fields                    []spot

	sawHost, sawType, sawExpect bool
	keepAlive, wantsUpgrade     bool
}

// spot is where a field stands in the head: its name up to the colon, and its value. A head has at most 1 MiB.
type spot struct{ at, colon, from, to uint32 }

// read goes on with a head that begins at b[0]; b is not empty. Until the head is whole it returns to == 0; from is
// then the number of bytes to forget. When it is whole it stands in b[from:to], made canonical. Whatever pieces the bytes
// come in, the verdict is the same: a line is judged when its end is seen, and each limit is a position.
func (s *scan) read(g *Guard, b []byte) (from, to int, kind Kind) {
	if s.line == 0 {
		skip, kind := s.begin(b)
		if kind != fine || skip == len(b) {
			return skip, 0, kind
		}
		from, b = skip, b[skip:]
	}
	for {
		end, kind := s.lineEnd(g, b)
		if kind != fine || end == 0 {
			return from, 0, kind
		}
		at := s.line
		s.line, s.seen = end, end
		line := b[at : end-2]
		switch {
		case at == 0:
			kind = s.requestLine(line, g.limits.Target)
		case len(line) > 0:
			kind = s.field(g, line, at)
		default:
			return from, from + end, s.finish(b[:end])
		}
		if kind != fine {
			return from, 0, kind
		}
	}
}

// begin looks at the first bytes of a head: the empty line that may come before it, and whether this is HTTP at all,
// so that TLS on a plain port is told at once.
func (s *scan) begin(b []byte) (skip int, kind Kind) {
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
func (s *scan) lineEnd(g *Guard, b []byte) (end int, kind Kind) {
	limit, over := g.limits.Header, headerTooLarge
	if s.line == 0 {
		limit, over = g.firstLine, targetTooLong
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

// finish judges what only a whole head can tell.
func (s *scan) finish(head []byte) Kind {
	switch {
	case !s.sawHost:
		return hostMissing // on HTTP/1.0 too: the shop gets exactly one Host, and none is invented
	case s.authorityEnd > 0 && !equal(head[s.authorityAt:s.authorityEnd], head[s.hostAt:s.hostEnd]):
		return targetNotHost
	case s.Chunked && s.ContentLength >= 0:
		return codingAndLength
	case s.Chunked && s.HTTP10:
		return codingOnHTTP10
	}
	s.settle()
	s.originForm(head)
	return fine
}
