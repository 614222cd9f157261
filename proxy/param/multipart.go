package param

import (
	"bytes"
	"unicode/utf8"

	"sluice/internal/octets"
	"sluice/proxy/reading"
	"sluice/proxy/reject"
)

// A multipart/form-data body (RFC 7578) is read to the letter: the first part begins at the first byte, the last one
// ends at the last byte, lines end in CRLF, and the boundary stands nowhere but between parts. Parsers repair what
// deviates in different ways and so find different parts. Browsers and libraries send nothing of the kind.

var (
	crlf   = []byte("\r\n")
	crlf2  = []byte("\r\n\r\n")
	dashes = []byte("--")

	encodedWord = []byte("=?") // how one begins
)

// formPart looks p up in a multipart form that is not empty.
func (s *Source) formPart(boundary []byte, p *Part) ([]byte, Fault) {
	m, file, ok := s.parts(boundary, p)
	if !ok {
		return nil, ambiguous(reject.BodyNotForm, "")
	}
	value, fault := m.only(p.name)
	switch {
	case fault.Reason != reject.Admitted:
		return nil, fault
	case file:
		return nil, ambiguous(reject.ValueInvalid, p.text)
	case !utf8.Valid(value):
		return nil, badRequest(reject.ValueInvalid, p.text)
	}
	return value, Fault{}
}

// parts are those that bear the name of p; file reports that one is a file. ok is false where parsers could find other
// parts.
func (s *Source) parts(boundary []byte, p *Part) (m match, file, ok bool) {
	var room [2 + maxBoundary]byte
	delimiter := append(append(room[:0], dashes...), boundary...)
	rest, ok := bytes.CutPrefix(s.Body, delimiter)
	for ok {
		if end, last := bytes.CutPrefix(rest, dashes); last {
			return m, file, len(end) == 0 || string(end) == "\r\n"
		}
		if rest, ok = bytes.CutPrefix(rest, crlf); !ok {
			break
		}
		var part multipartPart
		var inside []byte
		inside, rest, ok = bytes.Cut(rest, delimiter)
		if ok = ok && part.parse(inside); ok && m.add(s.partSpelling(part.name, p.name), part.content) {
			file = file || part.file
		}
	}
	return m, file, false
}

// partSpelling is how the name of a part is spelled. Few servers decode it.
func (s *Source) partSpelling(raw []byte, name string) reading.Spelling {
	spelling := reading.OfName(raw, name)
	if spelling == reading.Another && reading.OfName(s.name(raw, false), name) != reading.Another {
		return reading.Cased
	}
	return spelling
}

// multipartPart is one part of a form.
type multipartPart struct {
	name, content []byte
	file          bool
}

// parse parses what stands between two delimiters. ok is false where parsers could find something else.
func (p *multipartPart) parse(inside []byte) (ok bool) {
	if inside, ok = bytes.CutSuffix(inside, crlf); !ok {
		return false
	}
	var head []byte
	if head, p.content, ok = bytes.Cut(inside, crlf2); !ok {
		return false
	}
	for len(head) > 0 && ok {
		var line []byte
		line, head, _ = bytes.Cut(head, crlf)
		name, value := octets.Cut(line, ':')
		value = octets.Trim(value)
		switch {
		case len(name) == len(line) || !octets.IsToken(name) || !octets.IsText(value):
			return false
		case octets.EqualFold(name, "Content-Disposition"):
			ok = p.name == nil && p.parseDisposition(value)
		case octets.EqualFold(name, "Content-Type"):
			var m mediaType
			_, parameters := octets.Cut(value, ';')
			ok = m.parseParameters(parameters) == reject.NoCause
		case octets.EqualFold(name, "Content-Transfer-Encoding"):
			ok = octets.EqualFold(value, "7bit") || octets.EqualFold(value, "8bit") || octets.EqualFold(value, "binary")
		}
	}
	return ok && p.name != nil
}

// parseDisposition parses form-data; name="…"; filename="…", each at most once and nothing beside.
func (p *multipartPart) parseDisposition(v []byte) bool {
	media, rest := octets.Cut(v, ';')
	if !octets.EqualFold(octets.Trim(media), "form-data") {
		return false
	}
	for len(rest) > 0 {
		var name, value []byte
		var ok bool
		if name, value, rest, ok = cutParameter(rest); !ok {
			return false
		}
		switch {
		case octets.EqualFold(name, "name") && p.name == nil && isPartName(value):
			p.name = value
		case octets.EqualFold(name, "filename") && !p.file:
			p.file = true
		default:
			return false
		}
	}
	return p.name != nil
}

// isPartName reports a name that all parsers read as it stands: in UTF-8, without an escape, and without an encoded
// word (RFC 2047), which those of Java decode.
func isPartName(b []byte) bool {
	return bytes.IndexByte(b, '\\') < 0 && !bytes.Contains(b, encodedWord) && utf8.Valid(b)
}

// cutParameter cuts name=value off a list with semicolons. A backslash may stand in a quoted value, since browsers do
// not double it, but not where it could be the escape of the closing quote.
func cutParameter(list []byte) (name, value, rest []byte, ok bool) {
	name, list = octets.Cut(octets.Trim(list), '=')
	if len(list) == 0 || !octets.IsToken(name) {
		return nil, nil, nil, false
	}
	if list[0] != '"' {
		value, rest = octets.Cut(list, ';')
		value = octets.Trim(value)
		return name, value, rest, octets.IsToken(value) && bytes.IndexByte(value, '\'') < 0 // ' is a quote to some
	}
	value, rest, ok = bytes.Cut(list[1:], []byte{'"'})
	if rest = octets.Trim(rest); len(rest) > 0 {
		ok = ok && rest[0] == ';'
		rest = rest[1:]
	}
	return name, value, rest, ok && !bytes.HasSuffix(value, []byte{'\\'})
}
