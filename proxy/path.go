package proxy

// A shop's router may decode, fold and tidy a path before it decides whose request this is. The gate
// matches the path as received, and then in every form that a shop might make of it: when one of them leads to
// another route, and either is gated, the request is refused as ambiguous.

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

// unescape appends src with each valid %XX replaced. dst may be src[:0]: it never grows.
func unescape(dst, src []byte) []byte {
	for i := 0; i < len(src); i++ {
		c, escaped := escape(src[i:])
		if escaped {
			i += 2
		}
		dst = append(dst, c)
	}
	return dst
}

// unescapeBut undoes the escapes in path, in place; those of a slash only if slash. met tells that there are some of a slash.
func unescapeBut(path []byte, slash bool) (to []byte, met bool) {
	to = path[:0]
	for i := 0; i < len(path); i++ {
		c, escaped := escape(path[i:])
		met = met || escaped && c == '/'
		switch {
		case escaped && c == '/' && !slash:
			c = path[i]
		case escaped:
			i += 2
		}
		to = append(to, c)
	}
	return to, met
}

// escape reads the first byte of b, or the escape that stands there.
func escape(b []byte) (c byte, escaped bool) {
	if b[0] == '%' && len(b) > 2 {
		if hi, lo := unhex(b[1]), unhex(b[2]); hi|lo < 16 {
			return hi<<4 | lo, true
		}
	}
	return b[0], false
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
