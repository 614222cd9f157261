package param

import (
	"bytes"

	"sluice/internal/octets"
)

// Header is the value of a field; nil when there is none. name is written with "-". A field that stands twice is
// ambiguous, and so is one beside another of the same name with "_" for "-": CGI and WSGI fold the two into one.
func (s *Source) Header(name string) ([]byte, Fault) {
	var m match
	for key, value := range s.Head.Fields {
		switch {
		case octets.EqualFold(key, name):
			m.add(Exact, value)
		case octets.EqualFieldName(key, name):
			m.add(Cased, value)
		}
	}
	return m.only(name)
}

// Cookie is the value of a cookie in all Cookie fields (RFC 6265, section 4.2), without quotes and not decoded; nil
// when there is none. A name that stands twice is ambiguous, unless it is spelled alike and the values are the same.
func (s *Source) Cookie(name string) ([]byte, Fault) {
	var m match
	for key, list := range s.Head.Fields {
		if !octets.EqualFold(key, "Cookie") {
			continue
		}
		for len(list) > 0 {
			var pair []byte
			pair, list = octets.Cut(list, ';')
			s.addCookie(&m, pair, name)
		}
	}
	return m.only(name)
}

// addCookie adds a pair to m, unless it has come before: browsers send one for each path and domain. What stands behind
// a byte that no cookie may have is a cookie of its own to some readers: a comma to Rack, a blank to Bottle.
func (s *Source) addCookie(m *match, pair []byte, name string) {
	key, value := octets.Cut(octets.Trim(pair), '=')
	key = octets.Trim(key)
	first := octets.Unquote(value) // not every server drops a space before the value
	spelling := s.cookieSpelling(key, name)
	if !m.repeats(spelling, first) {
		m.add(spelling, first)
	}
	if spelling != Another {
		pair = value
	}
	for _, rest := cutCookie(pair); len(rest) > 0; {
		var part []byte
		part, rest = cutCookie(rest)
		if key, value := octets.Cut(part, '='); len(key) < len(part) {
			if spelling := s.cookieSpelling(octets.Trim(key), name); spelling != Another {
				m.add(max(spelling, Folded), octets.Trim(value))
			}
		}
	}
}

// cutCookie cuts list at its first byte that no cookie may have (RFC 6265, section 4.1.1), but for blanks beside "=".
// It goes through a run of blanks once.
func cutCookie(list []byte) (part, rest []byte) {
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == ' ' || c == '\t':
			after := bytes.TrimLeft(list[i:], " \t")
			if i > 0 && list[i-1] == '=' || len(after) > 0 && after[0] == '=' {
				i = len(list) - len(after) - 1
				continue
			}
			return list[:i], after
		case c > ' ' && c < 0x7f && c != '"' && c != ',' && c != '\\':
			continue
		}
		return list[:i], list[i+1:]
	}
	return list, nil
}

// cookieSpelling is how the name of a cookie is spelled. PHP before 7.4.11 and Rack before 2.2.3 decode it. A dot makes
// no object of a cookie.
func (s *Source) cookieSpelling(key []byte, name string) Spelling {
	spelling := ofName(key, name)
	if spelling == Another && hasEscape(key, true) {
		key = s.name(key, true)
		spelling = ofName(key, name)
		if spelling != Another {
			spelling = max(spelling, Folded)
		}
	}
	if spelling == Nested && bytes.IndexByte(key, '[') < 0 {
		return Another
	}
	return spelling
}

// isOddCookie reports a byte that no cookie may have (RFC 6265, section 4.1.1): some servers end the value there,
// others undo the escapes of quoted strings. It also reports an escaped space at an end, which shops trim.
func isOddCookie(v []byte) bool {
	const space = "%20"
	return bytes.ContainsAny(v, " \t\",\\") || bytes.HasPrefix(v, []byte(space)) || bytes.HasSuffix(v, []byte(space))
}

// plainCookie is a cookie's value decoded, since one session would otherwise have as many keys as spellings. A space
// becomes "+": some servers decode "+" to a space and others do not, so all spellings of either count as one.
func (s *Source) plainCookie(raw []byte) []byte {
	if bytes.IndexByte(raw, '%') < 0 && bytes.IndexByte(raw, ' ') < 0 {
		return raw
	}
	start := len(s.room)
	s.room = octets.Unescape(s.room, raw)
	value := s.room[start:len(s.room):len(s.room)]
	for i, c := range value {
		if c == ' ' {
			value[i] = '+'
		}
	}
	return value
}

// trimCookie cuts off both ends of what plainCookie returned what servers or shops trim: blanks, the "+" that stands
// for a space, and quotes. One session would otherwise have as many keys as blanks fit.
func trimCookie(v []byte) []byte { return bytes.Trim(v, "+\t\n\v\f\r\x00\"") }
