package proxy

import (
	"bytes"
	"unicode/utf8"
)

// content is what a body is said to be.
type content uint8

const (
	otherContent content = iota
	formContent
	partsContent // multipart/form-data
	jsonContent
)

const formMedia = "application/x-www-form-urlencoded"

// mediaType is a Content-Type as far as the gate looks into it.
type mediaType struct {
	content  content
	boundary []byte // of parts; it lies in the field
	latin    bool   // in ISO 8859-1: ASCII alone is read alike
	odd      bool   // servers disagree about what it says
}

// readMediaType reads a Content-Type. Jetty takes whatever begins like a form for one, PHP ends the type at a comma or
// a space, and a charset decides which letters the bytes are: what is not written plainly is odd.
func readMediaType(v []byte) (m mediaType) {
	media, params := cut(v, ';')
	media = trimSpace(media)
	if len(media) == 0 {
		m.odd = len(v) > 0
		return m
	}
	kind, sub := cut(media, '/')
	m.odd = !isToken(kind) || !isToken(sub)
	switch {
	case equalFold(media, formMedia):
		m.content = formContent
	case len(media) > len(formMedia) && equalFold(media[:len(formMedia)], formMedia):
		m.odd = true
	case equalFold(media, "application/json"), equalFold(media, "text/json"), len(sub) > 5 && equalFold(sub[len(sub)-5:], "+json"): // RFC 6839
		m.content = jsonContent
	}
	if equalFold(kind, "multipart") {
		m.content = partsContent
		m.odd = m.odd || !equalFold(sub, "form-data") // some take every multipart for a form
	}
	if m.content != otherContent {
		m.readParameters(params)
	}
	m.odd = m.odd || m.content == partsContent && len(m.boundary) == 0
	return m
}

// readParameters looks for charset and boundary. A form in parts may have no other: PHP takes for the boundary whatever
// stands behind the first such word.
func (m *mediaType) readParameters(list []byte) {
	seen := false
	for len(list) > 0 {
		var p []byte
		p, list = cut(list, ';')
		if p = trimSpace(p); len(p) == 0 {
			continue
		}
		name, value := cut(p, '=')
		if !isToken(name) || !isToken(value) && !isQuoted(value) {
			m.odd = true
			return
		}
		plain, _ := cut(name, '*') // RFC 8187 writes charset*
		switch {
		case equalFold(plain, "charset"):
			m.odd = m.odd || seen || len(plain) < len(name)
			seen = true
			m.readCharset(unquote(value))
		case m.content == partsContent:
			m.odd = m.odd || m.boundary != nil || !equalFold(name, "boundary")
			m.boundary = unquote(value)
			m.odd = m.odd || !isBoundary(m.boundary)
		}
	}
}

// isBoundary reports a boundary that needs no care: 1 to 70 bytes of those that RFC 2046, 5.1.1, allows, without comma,
// colon, brackets and space.
func isBoundary(b []byte) bool {
	for _, c := range b {
		if !isToken([]byte{c}) && c != '=' && c != '/' && c != '?' {
			return false
		}
	}
	return len(b) > 0 && len(b) <= 70
}

func (m *mediaType) readCharset(name []byte) {
	switch {
	case isUTF8(name):
	case equalFold(name, "iso-8859-1"):
		m.latin = true
	default:
		m.odd = true
	}
}

// isUTF8 reports a charset in which the bytes of UTF-8 mean what they do to the gate.
func isUTF8(charset []byte) bool {
	return equalFold(charset, "utf-8") || equalFold(charset, "utf8") || equalFold(charset, "us-ascii")
}

// isToken reports a token of RFC 9110, section 5.6.2.
func isToken(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || bytes.IndexByte([]byte(`"(),/:;<=>?@[\]{}`), c) >= 0 {
			return false
		}
	}
	return len(b) > 0
}

// isQuoted reports a quoted string without anything in it that would have to be escaped.
func isQuoted(b []byte) bool {
	n := len(b)
	return n >= 2 && b[0] == '"' && b[n-1] == '"' && !bytes.ContainsAny(b[1:n-1], `"\\`)
}

// readable reports whether the gate reads the body's bytes as the shop will: not compressed, of a type that says
// clearly what they are, and UTF-8.
func (r *request) readable() bool {
	for name, value := range r.asked.Fields {
		if len(value) > 0 && equalFold(name, "Content-Encoding") {
			return false
		}
	}
	m := r.media()
	switch {
	case m.odd:
		return false
	case m.content == partsContent: // a file may hold anything
		return true
	case !utf8.Valid(r.body) || m.latin && !isASCII(r.body):
		return false
	}
	return m.content != formContent || r.plainForm(m.latin)
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// plainForm reports whether all escapes in a urlencoded body are two hexadecimal digits, of ASCII where latin is set,
// and that the form does not name a charset of its own (HTML, 4.10.22.4). IIS reads %uXXXX too.
func (r *request) plainForm(latin bool) bool {
	for rest := r.body; len(rest) > 0; rest = rest[1:] {
		if rest[0] == '%' {
			if c, escaped := escape(rest); !escaped || latin && c >= utf8.RuneSelf {
				return false
			}
		}
	}
	charset, reason := r.pair(r.body, "_charset_")
	return reason == Admitted && (len(charset) == 0 || isUTF8(charset))
}

// media is the request's own type, read once.
func (r *request) media() mediaType {
	return readMediaType(r.asked.Peek("Content-Type"))
}

func (r *request) isJSON() bool { return r.media().content == jsonContent }

// isForm reports a form of either kind.
func (r *request) isForm() bool {
	c := r.media().content
	return c == formContent || c == partsContent
}

// inForm looks a name up in the body, a form; nil when it is not there.
func (r *request) inForm(name string) ([]byte, Reason) {
	if m := r.media(); m.content == partsContent {
		return r.part(m, name)
	}
	return r.pair(r.body, name)
}
