package proxy

import "bytes"

// cookie looks a name up in all Cookie fields (RFC 6265, section 4.2).
func (r *request) cookie(name string) (value []byte, reason Reason) {
	for key, list := range r.asked.Fields {
		if !equalFold(key, "Cookie") {
			continue
		}
		for len(list) > 0 {
			var pair []byte
			pair, list = cut(list, ';')
			key, v := cut(pair, '=')
			key = trimSpace(key)
			if !alias(r, key, name) {
				continue
			}
			if value != nil || string(key) != name {
				return nil, Ambiguous
			}
			value = unquote(trimSpace(v))
		}
	}
	return value, Admitted
}

func unquote(v []byte) []byte {
	if n := len(v); n >= 2 && v[0] == '"' && v[n-1] == '"' {
		return v[1 : n-1]
	}
	return v
}

// oddCookie reports a value that no cookie may have (RFC 6265, section 4.1.1) and that servers read differently: to some it
// ends at a space or a comma, some undo the escapes of quoted strings, \ with octal digits too.
func oddCookie(v []byte) bool { return bytes.ContainsAny(v, " \t\",\\") }

// plainCookie is v without escapes. PHP, Express and others undo them, so that one session has as many spellings as there
// are ways to escape its letters, and each would be a key, or a person. A plus is a space to some and itself to others; here
// all are a plus. A shop that undoes nothing sees several sessions where one is counted, and only if a client wants it so.
func (r *request) plainCookie(v []byte) []byte {
	if bytes.IndexByte(v, '%') < 0 && bytes.IndexByte(v, ' ') < 0 {
		return v
	}
	start := len(r.value)
	r.value = unescape(r.value, v)
	v = r.value[start:]
	for i, c := range v {
		if c == ' ' {
			v[i] = '+'
		}
	}
	return v
}
