package http1

// field judges one header line, without its CRLF, that begins at offset at of the head.
func (s *scan) field(g *Guard, line []byte, at int) Kind {
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
		return nameKind(line, n)
	}
	name, value := line[:n], line[n+1:]
	if kind := checkText(value); kind != fine {
		return kind
	}
	if seen&symbolByte != 0 && g.aliases(name) {
		return underscoreAlias
	}
	from, to := inner(value)
	s.fields = append(s.fields, spot{uint32(at), uint32(at + n), uint32(at + n + 1 + from), uint32(at + n + 1 + to)})
	return s.learn(g, name, value[from:to], at+n+1+from)
}

// nameKind names what is wrong with a line whose name ends, without a colon, at n.
func nameKind(line []byte, n int) Kind {
	switch {
	case n == len(line):
		return badName // no colon
	case line[n] == ' ' || line[n] == '\t':
		if n == 0 {
			return obsFold
		}
		return spaceInName
	case classes[line[n]]&textByte == 0:
		return controlKind(line[n])
	}
	return badName
}

// learn takes what matters for framing and routing out of a field, and refuses what may stand only once. The length of
// the name tells most fields apart at once. at is the offset of the value in the head.
func (s *scan) learn(g *Guard, name, value []byte, at int) Kind {
	switch len(name) {
	case len("host"):
		if fold(name, "host") {
			return s.host(value, at)
		}
	case len("expect"):
		if fold(name, "expect") {
			return s.expect(value)
		}
	case len("upgrade"):
		if fold(name, "upgrade") {
			s.upgrade(value)
			return fine
		}
		if fold(name, "trailer") {
			return trailer
		}
	case len("connection"):
		if fold(name, "connection") {
			return s.connection(g, value)
		}
	case len("content-type"):
		if fold(name, "content-type") {
			return s.contentType()
		}
	case len("content-length"):
		if fold(name, "content-length") {
			return s.length(value)
		}
		s.override(name)
	case len("transfer-encoding"):
		if fold(name, "transfer-encoding") {
			return s.coding(value)
		}
		s.override(name)
	case len("x-http-method"), len("x-http-method-override"):
		s.override(name)
	}
	return fine
}

// override notes a field out of which some frameworks take the method or the path.
func (s *scan) override(name []byte) {
	for _, known := range [...]string{"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"} {
		s.Override = s.Override || fold(name, known)
	}
}

// host judges Host's value and remembers where it stands.
func (s *scan) host(value []byte, at int) Kind {
	if s.sawHost {
		return hostTwice
	}
	s.sawHost, s.hostAt, s.hostEnd = true, at, at+len(value)
	return checkHost(value)
}

// length accepts Content-Length as RFC 9110 writes it and no parser doubts it: digits of an int64, no leading zero.
func (s *scan) length(value []byte) Kind {
	if s.ContentLength >= 0 {
		return lengthTwice
	}
	if len(value) == 0 || len(value) > 19 || value[0] == '0' && len(value) > 1 {
		return badLength
	}
	var n uint64 // 19 digits fit
	for _, c := range value {
		if c < '0' || c > '9' {
			return badLength
		}
		n = n*10 + uint64(c-'0')
	}
	if n > 1<<63-1 {
		return badLength
	}
	s.ContentLength = int64(n)
	return fine
}

// contentType accepts Content-Type once. Of two, one server believes the first and another the last, and they would
// read different fields out of the same body.
func (s *scan) contentType() Kind {
	if s.sawType {
		return contentTypeTwice
	}
	s.sawType = true
	return fine
}

// coding accepts the one transfer coding that all servers know, once.
func (s *scan) coding(value []byte) Kind {
	if s.Chunked {
		return codingTwice
	}
	if !fold(value, "chunked") {
		return badCoding
	}
	s.Chunked = true
	return fine
}

// expect makes the one expectation canonical in place. On HTTP/1.0 it must be ignored, and is blanked.
func (s *scan) expect(value []byte) Kind {
	if s.sawExpect || !fold(value, "100-continue") {
		return badExpectation
	}
	s.sawExpect = true
	if s.HTTP10 {
		copy(value, "            ")
		blank := &s.fields[len(s.fields)-1]
		blank.to = blank.from
		return fine
	}
	copy(value, "100-continue")
	s.Expect100 = true
	return fine
}
