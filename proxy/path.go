package proxy

import "bytes"

// A shop's router may decode, fold and tidy a path before it decides whose request this is. The gate
// matches the path as received, and once more in the loosest form that a shop might make of it: when the
// two lead to different routes and one of them is gated, the request is refused as ambiguous.

// plainPath reports whether no router on earth could read path in two ways: the fast path.
// Letter case and a slash at the end are left to the caller (folds).
func plainPath(path []byte) bool {
	prev := byte(0)
	for _, c := range path {
		if c == '%' || c == ';' || c == '\\' || prev == '/' && (c == '/' || c == '.') {
			return false
		}
		prev = c
	}
	return true
}

// folds reports whether letter case or a slash at the end could make a lenient router see another route.
func folds(path []byte) bool {
	if n := len(path); n > 1 && path[n-1] == '/' {
		return true
	}
	for _, c := range path {
		if 'A' <= c && c <= 'Z' {
			return true
		}
	}
	return false
}

// loosePath appends to dst the path after everything that routers are known to do to it: decoding,
// twice or three times; \ as /; the cut of ;parameters; the collapse of // and the resolution of dots.
func loosePath(dst, path []byte) []byte {
	start := len(dst)
	dst = append(dst, path...)
	for range 3 {
		decoded := unescape(dst[start:start], dst[start:])
		if len(decoded) == len(dst)-start {
			break
		}
		dst = dst[:start+len(decoded)]
	}
	// A decoded ? or # ends the path for a router that decodes first.
	if i := bytes.IndexAny(dst[start:], "?#"); i >= 0 {
		dst = dst[:start+i]
	}
	return dst[:start+tidy(dst[start:])]
}

// tidy resolves in place what needs no more room than it had: slashes, dots, parameters. It returns the new length.
func tidy(p []byte) int {
	if len(p) == 0 {
		return 0
	}
	w := 0
	for i := 0; i < len(p); {
		for i < len(p) && (p[i] == '/' || p[i] == '\\') {
			i++
		}
		from := i
		for i < len(p) && p[i] != '/' && p[i] != '\\' {
			i++
		}
		part := p[from:i]
		if cut := bytes.IndexByte(part, ';'); cut >= 0 {
			part = part[:cut]
		}
		switch string(part) {
		case "", ".":
		case "..":
			w = max(0, bytes.LastIndexByte(p[:w], '/'))
		default:
			p[w] = '/'
			w += 1 + copy(p[w+1:], part)
		}
	}
	if w == 0 {
		p[0] = '/'
		w = 1
	}
	return w
}

// unescape appends src with each valid %XX replaced. dst may be src[:0]: it never grows.
func unescape(dst, src []byte) []byte {
	for i := 0; i < len(src); i++ {
		if src[i] == '%' && i+2 < len(src) {
			if hi, lo := unhex(src[i+1]), unhex(src[i+2]); hi|lo < 16 {
				dst = append(dst, hi<<4|lo)
				i += 2
				continue
			}
		}
		dst = append(dst, src[i])
	}
	return dst
}

// unhex returns 0 to 15, or 255 for what is no hex digit.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= lower(c) && lower(c) <= 'f':
		return lower(c) - 'a' + 10
	}
	return 255
}
