package http1

import "bytes"

// requestLine judges the first line of a request, without its CRLF. It stands at the message's first byte, so that
// offsets in it are offsets in the head.
func (s *scan) requestLine(line []byte, longest int) Kind {
	first := bytes.IndexByte(line, ' ')
	if first <= 0 {
		return lineKind(line)
	}
	second := bytes.IndexByte(line[first+1:], ' ')
	if second <= 0 {
		return lineKind(line)
	}
	second += first + 1
	if kind := s.version(line[second+1:]); kind != fine {
		return kind
	}
	if kind := checkMethod(line[:first]); kind != fine {
		return kind
	}
	if second-first-1 > longest {
		return targetTooLong
	}
	s.methodEnd, s.targetAt, s.targetEnd = first, first+1, second
	return s.target(line[:first], line[first+1:second])
}

// lineKind names what is wrong with a line that has not three words.
func lineKind(line []byte) Kind {
	if kind := checkText(line); kind != fine {
		return kind
	}
	return badRequestLine
}

// version accepts HTTP/1.1 and HTTP/1.0; another pair of digits is a version that we do not speak.
func (s *scan) version(v []byte) Kind {
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
	if kind := checkText(v); kind != fine {
		return kind
	}
	return badVersion
}

func checkMethod(m []byte) Kind {
	switch string(m) {
	case "GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS":
		return fine
	case "TRACE":
		return traceMethod
	}
	if !isToken(m) {
		return badMethod
	}
	return unknownMethod // CONNECT too: we are a gateway, not a proxy that tunnels
}

// target judges a request target. An absolute one is remembered, to be compared with Host when that is known.
func (s *scan) target(method, t []byte) Kind {
	path := t
	switch {
	case t[0] == '/':
	case t[0] == '*':
		if len(t) > 1 || string(method) != "OPTIONS" {
			return badTarget
		}
		return fine
	default:
		n := schemeLen(t)
		if n == 0 {
			return badTarget
		}
		end := bytes.IndexAny(t[n:], "/?")
		if end < 0 {
			end = len(t) - n
		}
		s.authorityAt, s.authorityEnd = s.targetAt+n, s.targetAt+n+end
		if checkHost(t[n:n+end]) != fine {
			return badTarget
		}
		path = t[n+end:]
	}
	if len(path) > 1 && path[0] == '/' && path[1] == '/' {
		return badTarget // read as an authority by whoever resolves it as a reference
	}
	return checkTarget(path)
}

// schemeLen is the length of "http://" or "https://" at the start of t, or 0.
func schemeLen(t []byte) int {
	for _, scheme := range [...]string{"http://", "https://"} {
		if len(t) >= len(scheme) && fold(t[:len(scheme)], scheme) {
			return len(scheme)
		}
	}
	return 0
}

// checkTarget judges the bytes of a path and query: visible ASCII, whole escapes, and none that hides a NUL, CR or LF.
func checkTarget(t []byte) Kind {
	for i := 0; i < len(t); i++ {
		if classes[t[i]]&targetByte != 0 {
			continue
		}
		if t[i] != '%' {
			return badTarget
		}
		if i+2 >= len(t) || classes[t[i+1]]&classes[t[i+2]]&hexByte == 0 {
			return badEscape
		}
		switch hexValue(t[i+1])<<4 | hexValue(t[i+2]) {
		case 0, '\r', '\n':
			return encodedControl
		}
		i += 2
	}
	return fine
}

// hexValue is the value of a hexadecimal digit.
func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// originForm turns an absolute target into a path, in place, by moving the method to the right. RFC 9112, 3.2.1 and
// 3.2.4: an absent path is "/", or "*" for OPTIONS.
func (s *scan) originForm(head []byte) {
	if s.authorityEnd == 0 {
		return
	}
	at := s.authorityEnd // the first byte that stays
	method := head[:s.targetAt]
	switch {
	case head[at] == '/':
	case head[at] == ' ' && string(method) == "OPTIONS ":
		at--
		head[at] = '*'
	default:
		at--
		head[at] = '/'
	}
	s.methodAt = at - len(method)
	s.methodEnd, s.targetAt = at-1, at
	copy(head[s.methodAt:], method)
}
