package proxy

import (
	"bytes"
	"unicode/utf8"
)

// A multipart/form-data body (RFC 7578) is read to the letter: parts that begin at the first byte and end at the last,
// lines that end in CRLF, the boundary nowhere but between parts. Parsers repair what deviates in different ways, and so
// find different parts; browsers and libraries send nothing of the kind.

var (
	crlf   = []byte("\r\n")
	crlf2  = []byte("\r\n\r\n")
	dashes = []byte("--")
)

// part finds the content of the part of a name, as formField does; nil when there is none.
func (r *request) part(m mediaType, name string) (value []byte, reason Reason) {
	rest := r.body
	if len(rest) == 0 {
		return nil, Admitted
	}
	r.scratch = append(append(r.scratch[:0], dashes...), m.boundary...)
	delimiter := r.scratch
	rest, ok := bytes.CutPrefix(rest, delimiter)
	for ok {
		if end, last := bytes.CutPrefix(rest, dashes); last {
			ok = len(end) == 0 || string(end) == "\r\n"
			break
		}
		if rest, ok = bytes.CutPrefix(rest, crlf); !ok {
			break
		}
		var p formPart
		var inside []byte
		inside, rest, ok = bytes.Cut(rest, delimiter)
		if ok = ok && p.read(inside); !ok {
			break
		}
		switch {
		case alias(r, p.name, "_charset_"):
			ok = isUTF8(p.content)
		case !alias(r, p.name, name):
		case value != nil || string(p.name) != name || p.file || (m.latin || p.latin) && !isASCII(p.content):
			return nil, Ambiguous
		case !utf8.Valid(p.content):
			return nil, BadRequest
		default:
			value = p.content
		}
	}
	if !ok {
		return nil, Ambiguous
	}
	return value, Admitted
}

// formPart is one part of a form.
type formPart struct {
	name, content []byte
	file          bool
	latin         bool // see mediaType
}

// read takes apart what stands between two delimiters; ok is false where parsers could see something else.
func (p *formPart) read(inside []byte) (ok bool) {
	if inside, ok = bytes.CutSuffix(inside, crlf); !ok {
		return false
	}
	head, content, ok := bytes.Cut(inside, crlf2)
	if !ok {
		return false
	}
	p.content = content
	disposed := false
	for len(head) > 0 && ok {
		var line []byte
		line, head, _ = bytes.Cut(head, crlf)
		name, value, colon := bytes.Cut(line, []byte{':'})
		value = trimSpace(value)
		switch {
		case !colon || !isToken(name) || !isPrintable(value):
			return false
		case equalFold(name, "Content-Disposition"):
			ok = !disposed && p.disposition(value)
			disposed = true
		case equalFold(name, "Content-Type"):
			var m mediaType
			_, parameters := cut(value, ';')
			m.readParameters(parameters)
			p.latin, ok = m.latin, !m.odd
		case equalFold(name, "Content-Transfer-Encoding"):
			ok = equalFold(value, "7bit") || equalFold(value, "8bit") || equalFold(value, "binary")
		}
	}
	return ok && disposed
}

// disposition reads form-data; name="…"; filename="…", each at most once and nothing beside.
func (p *formPart) disposition(v []byte) bool {
	media, rest := cut(v, ';')
	if !equalFold(trimSpace(media), "form-data") {
		return false
	}
	for len(rest) > 0 {
		var name, value []byte
		var ok bool
		if name, value, rest, ok = cutParameter(rest); !ok {
			return false
		}
		switch {
		case equalFold(name, "name") && p.name == nil && bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value):
			p.name = value
		case equalFold(name, "filename") && !p.file:
			p.file = true
		default:
			return false
		}
	}
	return p.name != nil
}

// cutParameter takes name=value off a list that semicolons part. A backslash may stand in a quoted value (browsers do not
// double it), but not where it could be taken for the escape of the closing quote.
func cutParameter(list []byte) (name, value, rest []byte, ok bool) {
	name, list = cut(trimSpace(list), '=')
	if len(list) == 0 || !isToken(name) {
		return nil, nil, nil, false
	}
	if list[0] != '"' {
		value, rest = cut(list, ';')
		value = trimSpace(value)
		return name, value, rest, isToken(value) && bytes.IndexByte(value, '\'') < 0 // PHP takes ' for a quote
	}
	value, rest, ok = bytes.Cut(list[1:], []byte{'"'})
	if rest = trimSpace(rest); len(rest) > 0 {
		ok = ok && rest[0] == ';'
		rest = rest[1:]
	}
	return name, value, rest, ok && !bytes.HasSuffix(value, []byte{'\\'})
}

// isPrintable reports that no control character is in b, but perhaps a tab.
func isPrintable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
