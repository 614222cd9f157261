package upstream

import (
	"bytes"
	"encoding/binary"
)

// role is what a field means to a hop. Most mean nothing to it and travel on.
type role uint8

const (
	endToEnd role = iota
	hopByHop      // RFC 9110, 7.6.1: for this connection only
	connection
	contentLength
	transferEncoding
	contentEncoding
)

// roleOf tells the few names that matter by their length first.
func roleOf(name []byte) role {
	switch len(name) {
	case len("te"):
		return choose(is(name, "te"), hopByHop)
	case len("upgrade"):
		return choose(is(name, "upgrade") || is(name, "trailer"), hopByHop)
	case len("connection"):
		if is(name, "keep-alive") {
			return hopByHop
		}
		return choose(is(name, "connection"), connection)
	case len("content-length"):
		return choose(is(name, "content-length"), contentLength)
	case len("proxy-connection"):
		if is(name, "proxy-connection") {
			return hopByHop
		}
		return choose(is(name, "content-encoding"), contentEncoding)
	case len("transfer-encoding"):
		return choose(is(name, "transfer-encoding"), transferEncoding)
	}
	return endToEnd
}

func choose(is bool, r role) role {
	if is {
		return r
	}
	return endToEnd
}

// is compares a token with a lower-case one, without regard to ASCII case. No other letter folds.
func is(token []byte, lower string) bool {
	if len(token) != len(lower) {
		return false
	}
	for i, c := range token {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// same compares two tokens without regard to ASCII case.
func same(a, b []byte) bool { return len(a) == len(b) && bytes.EqualFold(a, b) }

// cutField takes the first field line off b, which ends in CRLF. It refuses what RFC 9112 calls
// malformed, and what it lets a recipient repair: folded lines, spaces before the colon, control bytes.
func cutField(b []byte) (name, value, rest []byte, ok bool) {
	end := bytes.IndexByte(b, '\n')
	if end < 1 || b[end-1] != '\r' {
		return nil, nil, nil, false
	}
	line := b[:end-1]
	colon := bytes.IndexByte(line, ':')
	if colon < 1 || !isToken(line[:colon]) {
		return nil, nil, nil, false
	}
	value = trim(line[colon+1:])
	return line[:colon], value, b[end+1:], isText(value)
}

// cutToken takes the first element off a comma-separated list. Empty ones are passed over.
func cutToken(list []byte) (token, rest []byte) {
	for len(list) > 0 && len(token) == 0 {
		token, list, _ = bytes.Cut(list, []byte{','})
		token = trim(token)
	}
	return token, list
}

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// tokenBytes marks tchar of RFC 9110, 5.6.2.
var tokenBytes = func() (t [256]bool) {
	const tchar = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for i := range len(tchar) {
		t[tchar[i]] = true
	}
	return t
}()

func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenBytes[c] {
			return false
		}
	}
	return len(b) > 0
}

// isText reports that b has no control byte but the tab (RFC 9110, 5.5).
func isText(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		// Eight at a time: a byte below the space, or DEL, leaves its highest bit (Warren, Hacker's Delight, 6-1).
		const ones, tops = 0x0101010101010101, 0x8080808080808080
		v := binary.LittleEndian.Uint64(b)
		del := v ^ 0x7f*ones
		if ((v-' '*ones)&^v|(del-ones)&^del)&tops != 0 && !isPlain(b[:8]) {
			return false
		}
	}
	return isPlain(b)
}

func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
