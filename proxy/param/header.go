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
		if octets.EqualFieldName(key, name) {
			m.count++
			m.exact, m.value = octets.EqualFold(key, name), value
		}
	}
	return m.only(name)
}

// Cookie is the value of a cookie in all Cookie fields (RFC 6265, section 4.2), without quotes and not decoded; nil
// when there is none. A name that stands twice with different values is ambiguous.
func (s *Source) Cookie(name string) ([]byte, Fault) {
	var m match
	for key, list := range s.Head.Fields {
		if !octets.EqualFold(key, "Cookie") {
			continue
		}
		for len(list) > 0 {
			var pair []byte
			pair, list = octets.Cut(list, ';')
			key, value := octets.Cut(octets.Trim(pair), '=')
			key, value = octets.Trim(key), octets.Unquote(value) // not every server drops a space before the value
			if !m.repeats(key, name, value) {                    // browsers send one for each path and domain
				m.add(key, name, value)
			}
		}
	}
	return m.only(name)
}

// hasOddCookieByte reports a byte that no cookie may have (RFC 6265, section 4.1.1). Some servers end the value there,
// others undo the escapes of quoted strings.
func hasOddCookieByte(v []byte) bool { return bytes.ContainsAny(v, " \t\",\\") }

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
