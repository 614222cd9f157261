package param

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"sluice/internal/octets"
	"sluice/proxy/reject"
)

// bodyKind is what Content-Type says the body is.
type bodyKind uint8

const (
	otherBody     bodyKind = iota // not looked into
	formBody                      // application/x-www-form-urlencoded
	multipartBody                 // multipart/form-data
	jsonBody
)

// mediaType is a parsed Content-Type.
type mediaType struct {
	kind     bodyKind
	boundary []byte       // of multipartBody; part of the field
	charset  []byte       // likewise; nil = none was named
	foreign  bool         // a form's values are of another charset, which has the bytes of ASCII
	cause    reject.Cause // why the body cannot be looked into; NoCause = it can
}

const multipartForm = "multipart/form-data"

// parseMediaType parses a Content-Type. An empty one is otherBody.
func parseMediaType(v []byte) (m mediaType) {
	media, parameters := octets.Cut(v, ';')
	media = octets.Trim(media)
	if len(v) == 0 {
		return m
	}
	kind, sub := octets.Cut(media, '/')
	if !octets.IsToken(kind) || !octets.IsToken(sub) {
		m.cause = reject.ContentTypeInvalid
		return m
	}
	switch {
	case octets.EqualFold(media, "application/x-www-form-urlencoded"):
		m.kind = formBody
	case octets.EqualFold(media, multipartForm):
		m.kind = multipartBody
	case octets.EqualFold(media, "application/json"), octets.EqualFold(media, "text/json"), hasJSONSuffix(sub):
		m.kind = jsonBody
	default:
		return m
	}
	m.cause = m.parseParameters(parameters)
	// Netty and Vert.x take a multipart form for one of pairs where its type has a capital.
	if m.cause == reject.NoCause && m.kind == multipartBody && (m.boundary == nil || string(media) != multipartForm) {
		m.cause = reject.ContentTypeInvalid
	}
	return m
}

// hasJSONSuffix reports a subtype like problem+json (RFC 6839). One that begins with "x" is a form for h3 or Elysia.
func hasJSONSuffix(sub []byte) bool {
	const suffix = "+json"
	return len(sub) > len(suffix) && octets.EqualFold(sub[len(sub)-len(suffix):], suffix) && octets.Lower(sub[0]) != 'x'
}

// parseParameters reads charset and boundary. formidable looks for "json" and "multipart" among those of a form.
func (m *mediaType) parseParameters(list []byte) (cause reject.Cause) {
	hasCharset := false
	if m.kind == formBody && (containsFold(list, "json") || containsFold(list, "multipart")) {
		return reject.ContentTypeInvalid
	}
	for len(list) > 0 {
		var p []byte
		p, list = octets.Cut(list, ';')
		if p = octets.Trim(p); len(p) == 0 {
			continue
		}
		name, value := octets.Cut(p, '=')
		if !octets.IsToken(name) || !octets.IsToken(value) && !isPlainQuoted(value) {
			return reject.ContentTypeInvalid
		}
		value = octets.Unquote(value)
		plain, _ := octets.Cut(name, '*') // RFC 8187 writes charset*
		switch {
		case octets.EqualFold(plain, "charset"):
			if hasCharset || len(plain) < len(name) {
				return reject.ContentTypeInvalid
			}
			hasCharset, m.charset = true, value
			switch {
			case isUTF8Charset(value):
			case m.kind != jsonBody && isASCIISuperset(value): // Apache's HttpClient says ISO-8859-1
				m.foreign = true
			default:
				cause = reject.BodyNotUTF8
			}
		case m.kind == multipartBody:
			if m.boundary != nil || !octets.EqualFold(name, "boundary") || !isBoundary(value) {
				return reject.ContentTypeInvalid
			}
			m.boundary = value
		}
	}
	return cause
}

// isPlainQuoted reports a quoted string in which nothing is escaped.
func isPlainQuoted(b []byte) bool {
	n := len(b)
	return n >= 2 && b[0] == '"' && b[n-1] == '"' && !bytes.ContainsAny(b[1:n-1], `"\\`)
}

// isUTF8Charset reports a charset whose bytes mean the same in UTF-8.
func isUTF8Charset(name []byte) bool {
	return octets.EqualFold(name, "utf-8") || octets.EqualFold(name, "utf8") || octets.EqualFold(name, "us-ascii")
}

// isASCIISuperset reports a charset whose bytes below 0x80 are ASCII: text of those alone reads the same in UTF-8.
func isASCIISuperset(name []byte) bool {
	for _, prefix := range [...]string{"iso-8859-", "windows-125", "gb", "big5", "euc-", "shift_jis", "koi8-"} {
		if octets.HasPrefixFold(name, prefix) {
			return true
		}
	}
	return isUTF8Charset(name)
}

// maxBoundary is the length of a boundary in bytes (RFC 2046, section 5.1.1).
const maxBoundary = 70

// isBoundary reports a boundary that needs no quotes, or only since it holds "=", "/" or "?". None has a "%" (RFC 2046,
// section 5.1.1): cpp-httplib decodes it.
func isBoundary(b []byte) bool {
	for i, c := range b {
		if !octets.IsToken(b[i:i+1]) && c != '=' && c != '/' && c != '?' || c == '%' {
			return false
		}
	}
	return len(b) > 0 && len(b) <= maxBoundary
}

// CheckBody reports why a body that is JSON or a form cannot be looked into: it is compressed, not UTF-8, or its
// Content-Type can be read in more than one way. Lookups in the body check it themselves.
func (s *Source) CheckBody() Fault {
	if len(s.body()) == 0 {
		return Fault{}
	}
	if !s.checked {
		s.checked = true
		if cause := s.bodyCause(); cause != reject.NoCause {
			s.bodyFault = ambiguous(cause, "")
		}
	}
	return s.bodyFault
}

func (s *Source) bodyCause() reject.Cause {
	m := s.mediaType()
	if m.cause != reject.NoCause || m.kind == otherBody {
		return m.cause
	}
	switch {
	case s.compressed():
		return reject.BodyCompressed
	case m.kind == multipartBody: // a file may hold anything
		return reject.NoCause
	case !utf8.Valid(s.Body):
		return reject.BodyNotUTF8
	case m.kind == formBody && !wholeEscapes(s.Body):
		return reject.BodyNotForm
	}
	return reject.NoCause
}

// typeHas reports a Content-Type with the word, by which some servers go: Laravel and ThinkPHP look for "json".
func (s *Source) typeHas(word string) bool { return containsFold(s.Head.Peek("Content-Type"), word) }

// otherCause is why a body, in which nothing is to be found, cannot be searched. It knows more charsets than CheckBody:
// in those names and numbers have the bytes of ASCII, too.
func (s *Source) otherCause() reject.Cause {
	m := s.mediaType()
	switch {
	case m.cause != reject.NoCause && (m.cause != reject.BodyNotUTF8 || !isASCIISuperset(m.charset)):
		return m.cause
	case s.compressed():
		return reject.BodyCompressed
	}
	return reject.NoCause
}

// mayBeForm reports a type that some server takes for one of a form: PHP and Tornado read its start, Rack takes none
// for a form.
func (s *Source) mayBeForm() bool {
	return s.typeHas("form") || len(octets.Trim(s.Head.Peek("Content-Type"))) == 0
}

// beginsOtherwise reports a body that does not begin as a form does. Behind a byte order mark Express finds another
// first name. GoFrame takes what begins with a brace for JSON, and with "<" for XML, whatever its type.
func (s *Source) beginsOtherwise() bool {
	text := bytes.TrimLeftFunc(s.Body, isBeforeText)
	return len(text) > 0 && (text[0] == '{' || text[0] == '<') || bytes.HasPrefix(s.Body, byteOrderMark)
}

// mayBeginOtherwise is beginsOtherwise for a form that is decoded before.
func (s *Source) mayBeginOtherwise() bool {
	text := bytes.TrimLeftFunc(s.Body, isBeforeText)
	return len(text) > 0 && strings.IndexByte("{<%+=", text[0]) >= 0
}

// mayHaveParts reports a body that Workerman takes for a multipart form, since its type has a boundary.
func (s *Source) mayHaveParts() bool {
	return s.typeHas("boundary") && containsFold(s.Body, "Content-Disposition")
}

// isBeforeText reports a letter that some reader drops before JSON or XML: GoFrame blanks, NUL, broken UTF-8 and "&",
// others a byte order mark.
func isBeforeText(r rune) bool { return r <= ' ' || r == '&' || r >= utf8.RuneSelf }

// compressed reports a body that is not as it stands.
func (s *Source) compressed() bool {
	for name, value := range s.Head.Fields {
		if len(value) > 0 && octets.EqualFold(name, "Content-Encoding") {
			return true
		}
	}
	return false
}

// body is the whole body; empty when it was not read.
func (s *Source) body() []byte {
	if !s.BodyRead {
		return nil
	}
	return s.Body
}

func (s *Source) mediaType() *mediaType {
	if !s.mediaRead {
		s.media, s.mediaRead = parseMediaType(s.Head.Peek("Content-Type")), true
	}
	return &s.media
}

func (s *Source) hasJSON() bool { return s.mediaType().kind == jsonBody && len(s.body()) > 0 }

func (s *Source) hasForm() bool {
	kind := s.mediaType().kind
	return kind == formBody || kind == multipartBody
}
