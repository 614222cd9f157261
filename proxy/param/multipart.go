package param

import (
	"bytes"
	"unicode/utf8"

	"sluice/internal/octets"
	"sluice/proxy/reject"
)

// A multipart/form-data body (RFC 7578) is read to the letter: lines end in CRLF, and the boundary stands nowhere but
// between parts. Parsers repair what deviates in different ways and so find different parts. Browsers and libraries
// send nothing of the kind. Lines before the first boundary (RFC 2046, section 5.1.1) are passed over, unless they
// could be read as a part. What a part says of its content counts for the part that is looked up.

var (
	crlf   = []byte("\r\n")
	crlf2  = []byte("\r\n\r\n")
	dashes = []byte("--")

	encodedWord = []byte("=?") // how one begins
)

// formPart looks p up in a multipart form that is not empty.
func (s *Source) formPart(boundary []byte, p *Part) ([]byte, Fault) {
	m, said, ok := s.parts(boundary, p)
	if !ok || said.encoded {
		return nil, ambiguous(reject.BodyNotForm, "")
	}
	value, fault := m.only(p.name)
	switch {
	case fault.Reason != reject.Admitted:
		return nil, fault
	case said.foreign && !isASCII(value):
		return nil, ambiguous(reject.BodyNotUTF8, "")
	case said.file:
		return nil, ambiguous(reject.ValueInvalid, p.text)
	case !utf8.Valid(value):
		return nil, badRequest(reject.ValueInvalid, p.text)
	}
	return value, Fault{}
}

// parts are those that bear the name of p, and what any of them says of itself. ok is false where parsers could find
// other parts.
func (s *Source) parts(boundary []byte, p *Part) (m match, said multipartPart, ok bool) {
	said.foreign = s.mediaType().foreign
	preamble, rest, ok := cutDelimiter(s.Body, boundary)
	ok = ok && isPreamble(preamble)
	for ok {
		if end, last := bytes.CutPrefix(rest, dashes); last {
			return m, said, len(crlf)*bytes.Count(end, crlf) == len(end)
		}
		if rest, ok = bytes.CutPrefix(rest, crlf); !ok {
			break
		}
		var part multipartPart
		var inside []byte
		inside, rest, ok = cutDelimiter(rest, boundary)
		ok = ok && part.parse(inside) && !part.fileNames(p.name)
		if ok && m.add(s.partSpelling(part.name, p.name), part.content) {
			said.file, said.encoded = said.file || part.file, said.encoded || part.encoded
			said.foreign = said.foreign || part.foreign
		}
		if ok && string(part.name) == "_charset_" { // of all values (RFC 7578, section 4.6); aiohttp and Jetty heed it
			other := len(part.content) > 0 && !isUTF8Charset(part.content)
			said.foreign = said.foreign || other
			said.encoded = said.encoded || other && !isASCIISuperset(part.content)
		}
	}
	return m, said, false
}

// cutDelimiter cuts text at the boundary and the two dashes before it. ok is false where it stands without them: Sanic
// ends a part there, too.
func cutDelimiter(text, boundary []byte) (before, rest []byte, ok bool) {
	before, rest, ok = bytes.Cut(text, boundary)
	before, dashed := bytes.CutSuffix(before, dashes)
	return before, rest, ok && dashed
}

// partSpelling is how the name of a part is spelled. Few servers decode it.
func (s *Source) partSpelling(raw []byte, name string) Spelling {
	spelling := ofFormField(raw, name)
	if spelling == Another && ofFormField(s.name(raw, false), name) != Another {
		return Cased
	}
	return spelling
}

// isPreamble reports whether the text before the first boundary is nothing, or lines that no parser takes for a part.
func isPreamble(text []byte) bool {
	return !containsFold(text, "Content-Disposition") && (len(text) == 0 || bytes.HasSuffix(text, crlf))
}

// containsFold reports whether words stand anywhere in a text, in any letter case.
func containsFold(text []byte, words string) bool {
	for i := 0; i+len(words) <= len(text); i++ {
		if octets.HasPrefixFold(text[i:], words) {
			return true
		}
	}
	return false
}

// hasExtendedName reports a name of a part in pieces or with escapes (RFC 2231), of which Go makes another: name*0=s;
// name*1=ku.
func hasExtendedName(body []byte) bool {
	for i := range body {
		if octets.HasPrefixFold(body[i:], "name*") && !octets.HasPrefixFold(body[max(i-len("file"), 0):], "file") {
			return true
		}
	}
	return false
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// multipartPart is one part of a form.
type multipartPart struct {
	name, content []byte
	fileName      []byte
	file          bool
	encoded       bool // the content is not as it stands
	foreign       bool // mediaType.foreign; servers that do not heed the charset read UTF-8
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
		case containsFold(line[1:], "Content-Disposition"): // Rack takes it anywhere in the head of a part
			return false
		case octets.EqualFold(name, "Content-Disposition"):
			ok = p.name == nil && p.parseDisposition(value)
		case octets.EqualFold(name, "Content-Type"):
			_, parameters := octets.Cut(value, ';')
			ok = p.parseParameters(parameters)
		case octets.EqualFold(name, "Content-Transfer-Encoding"):
			p.encoded = p.encoded || !octets.EqualFold(value, "7bit") && !octets.EqualFold(value, "8bit") &&
				!octets.EqualFold(value, "binary")
		}
	}
	return ok && p.name != nil
}

// parseParameters parses those of a part's Content-Type.
func (p *multipartPart) parseParameters(list []byte) bool {
	var m mediaType
	cause := m.parseParameters(list)
	p.foreign, p.encoded = p.foreign || m.foreign, p.encoded || cause == reject.BodyNotUTF8
	return cause != reject.ContentTypeInvalid
}

// parseDisposition parses form-data; name="…"; filename="…"; filename*=…, each at most once and nothing beside.
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
			p.file, p.fileName = true, value
		case octets.EqualFold(name, "filename*") && p.file && len(rest) == 0: // .NET sends it behind the other
		default:
			return false
		}
	}
	return p.name != nil
}

// fileNames reports a file name that Workerman takes for the name of a field: name=a; filename="sku". Drogon does so
// where it comes first.
func (p *multipartPart) fileNames(want string) bool {
	spelling := ofName(p.fileName, want)
	return spelling == Exact || spelling == Folded
}

// isPartName reports a name that all parsers read as it stands: in UTF-8, without an escape, without ";", at which
// Catalyst ends it, and without an encoded word (RFC 2047), which those of Java decode.
func isPartName(b []byte) bool {
	return !bytes.ContainsAny(b, `\;`) && !bytes.Contains(b, encodedWord) && utf8.Valid(b)
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
		extended := name[len(name)-1] == '*'                  // by RFC 8187, with two ' that are no quotes
		plain := extended || bytes.IndexByte(value, '\'') < 0 // ' is a quote to some
		return name, value, rest, octets.IsToken(value) && plain
	}
	value, rest, ok = bytes.Cut(list[1:], []byte{'"'})
	if rest = octets.Trim(rest); len(rest) > 0 {
		ok = ok && rest[0] == ';'
		rest = rest[1:]
	}
	return name, value, rest, ok && !bytes.HasSuffix(value, []byte{'\\'}) && !namesPart(value)
}

// namesPart reports whether a quoted value holds what Rack and Drogon take for the name of the part, since they heed no
// quotes.
func namesPart(value []byte) bool {
	if containsFold(value, "name=") {
		return true
	}
	for i, c := range value {
		if c == ';' && octets.HasPrefixFold(octets.Trim(value[i+1:]), "name") {
			return true
		}
	}
	return false
}
