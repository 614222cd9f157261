package param

import (
	"bytes"
	"encoding/json"
	"strings"

	"sluice/internal/octets"
	"sluice/proxy/reject"
)

// pair looks p up in a query or a form of type application/x-www-form-urlencoded (WHATWG URL). A pair next to ";" is
// ambiguous: servers that split there too find another value, or another name.
func (s *Source) pair(list []byte, p *Part) ([]byte, Fault) {
	m, split := s.pairs(list, p.name)
	raw, fault := m.only(p.name)
	switch {
	case fault.Reason != reject.Admitted:
		return nil, fault
	case split:
		return nil, ambiguous(reject.ValueInvalid, p.text)
	}
	return s.text(raw, true, p)
}

// pairs are those that bear the name; split reports that one stands next to ";". Netty, Vert.x and Spring WebFlux drop
// "=" before a name.
func (s *Source) pairs(list []byte, want string) (m match, split bool) {
	for before := byte('&'); len(list) > 0; {
		field, rest, after := list, []byte(nil), byte('&')
		if i := bytes.IndexAny(list, "&;"); i >= 0 {
			field, rest, after = list[:i], list[i+1:], list[i]
		}
		name, raw := octets.Cut(bytes.TrimLeft(field, "="), '=')
		if m.add(s.fieldSpelling(name, want), raw) && (before == ';' || after == ';') {
			split = true
		}
		list, before = rest, after
	}
	return m, split
}

// fieldSpelling is how the name of a pair is spelled. GoFrame decodes names of forms twice, and CGI.pm and ASP.NET undo
// %uXXXX, which may be any letter.
func (s *Source) fieldSpelling(raw []byte, want string) Spelling {
	name := s.name(raw, true)
	spelling := ofFormField(name, want)
	switch {
	case spelling != Another || bytes.IndexByte(name, '%') < 0:
		return spelling
	case octets.HasUnicodeEscape(name):
		return Nested
	case ofFormField(s.name(name, true), want) != Another:
		return Nested
	}
	return Another
}

// formField looks p up in a form.
func (s *Source) formField(p *Part) ([]byte, Fault) {
	if fault := s.CheckBody(); fault.Reason != reject.Admitted || len(s.body()) == 0 {
		return nil, fault
	}
	switch m := s.mediaType(); {
	case m.kind == formBody && (s.beginsOtherwise() || s.mayHaveParts()):
		return nil, ambiguous(reject.BodyNotForm, "")
	case m.kind == formBody:
		value, fault := s.pair(s.Body, p)
		if m.foreign && !isASCII(value) {
			return nil, ambiguous(reject.BodyNotUTF8, "")
		}
		return value, fault
	case m.kind == multipartBody:
		return s.formPart(m.boundary, p)
	}
	return nil, Fault{}
}

// CheckOtherPlace compares v, whose value has been found, with the other place of its names: the body for $arg_x,
// the query for $form_x and $json_x. PHP's $_REQUEST, Java's getParameter, Laravel, Rails and others prefer the one or
// the other. Another value is ambiguous.
func (v *Variable) CheckOtherPlace(s *Source) (fault Fault) {
	for i := range v.parts {
		p := &v.parts[i]
		switch {
		case p.kind == Form && len(s.Query) > 0:
			m, split := s.pairs(s.Query, p.name)
			fault = s.sameAs(p, &m, split, true)
		case p.kind == JSON && len(s.Query) > 0:
			m, split := s.pairs(s.Query, p.keys[0])
			fault = s.sameAs(p, &m, split || len(p.keys) > 1, true) // Rails: the query replaces the whole array or object
		case p.kind == Query && len(s.body()) > 0:
			fault = s.checkBody(p)
		}
		if fault.Reason != reject.Admitted {
			return fault
		}
	}
	return Fault{}
}

// checkBody is CheckOtherPlace for a body. Its type does not tell how it is read: servers look for a word in the type
// (Laravel, Rack, formidable), or heed none (Bottle, GoFrame). So it is read as pairs, and as JSON or XML by its start.
func (s *Source) checkBody(p *Part) Fault {
	m := s.mediaType()
	if cause := s.otherCause(); cause != reject.NoCause {
		return ambiguous(cause, "")
	}
	if m.kind == multipartBody {
		return s.checkParts(m.boundary, p)
	}
	if !s.mayBeForm() {
		if fault := s.checkTextPairs(p); fault.Reason != reject.Admitted {
			return fault
		}
		return s.checkText(p, s.Body, false)
	}
	found, split := s.pairs(s.Body, p.name)
	fault := s.sameAs(p, &found, split, true)
	if fault.Reason == reject.Admitted {
		fault = s.checkText(p, s.Body, true)
	}
	if fault.Reason != reject.Admitted || !s.mayBeginOtherwise() {
		return fault
	}
	// GoFrame reads a form of one name as JSON or XML if name and value together, without the "=", begin so.
	name, value := octets.Cut(s.Body, '=')
	start := len(s.room)
	s.room = appendUnescaped(appendUnescaped(s.room, name, true), value, true)
	return s.checkText(p, s.room[start:len(s.room):len(s.room)], true)
}

// checkTextPairs is checkBody for text that is no form by its type: Bottle and GoFrame decode its names once. Text goes
// on behind the last value of a URL, so the value ends at a quote or tag, too. Several URLs may have the same value.
func (s *Source) checkTextPairs(p *Part) Fault {
	var m match
	for list := bytes.TrimPrefix(s.Body, []byte{'?'}); len(list) > 0; {
		field, rest := list, []byte(nil)
		if i := bytes.IndexAny(list, "&;"); i >= 0 {
			field, rest = list[:i], list[i+1:]
		}
		name, raw := octets.Cut(field, '=')
		if i := bytes.IndexFunc(raw, endsInText); i >= 0 {
			raw = raw[:i]
		}
		m.add(ofField(s.name(name, true), p.name), raw)
		list = rest
	}
	m.literal = 0
	return s.sameAs(p, &m, false, true)
}

// endsInText reports a letter at which a URL within JSON or XML ends. No SKU has it.
func endsInText(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r == '<' || r == ']' }

// checkParts is checkBody for a multipart form. One that is not to the letter matters if it could have the name at all.
func (s *Source) checkParts(boundary []byte, p *Part) Fault {
	found, said, ok := s.parts(boundary, p)
	if !ok && (mentions(s.Body, p.outer()) || hasExtendedName(s.Body)) {
		return ambiguous(reject.BodyNotForm, "")
	}
	return s.sameAs(p, &found, said.file || said.encoded || said.foreign && !isASCII(found.value), false)
}

// checkText is checkBody for text as JSON or XML, by how it begins (GoFrame) or by a word in the type. What is neither
// to the letter matters if it could have the name at all: a form within another multipart type, JSON with comments.
func (s *Source) checkText(p *Part, text []byte, form bool) Fault {
	text = bytes.TrimSpace(bytes.TrimLeftFunc(text, isBeforeText))
	isJSON, brace, found := s.typeHas("json"), bytes.HasPrefix(text, []byte{'{'}), false
	switch {
	case (isJSON || brace) && json.Valid(text):
		return s.checkJSON(p, text)
	case isJSON && bytes.IndexByte(text, 0) >= 0, brace && len(text) > 1 && text[1] == 0: // UTF-16, also unnamed
		return ambiguous(reject.BodyNotUTF8, "")
	case isJSON, s.typeHas("multipart"), s.mayHaveParts(), form && brace:
		found = mentions(text, p.outer()) || bytes.IndexByte(text, '\\') >= 0
	case brace: // almost JSON: with NaN, 02 or comments
		found = hasMember(text, p.outer())
	case bytes.HasPrefix(text, []byte{'<'}):
		found = namedInXML(text, p.outer())
	}
	if found {
		return ambiguous(reject.PlacesDiffer, p.text)
	}
	return Fault{}
}

// sameAs compares what another place has with the value of p. odd is what servers read in different ways there.
func (s *Source) sameAs(p *Part, other *match, odd, encoded bool) Fault {
	if other.count == 0 {
		return Fault{}
	}
	if odd || other.nested || other.literal > 1 || other.differs {
		return ambiguous(reject.PlacesDiffer, p.text)
	}
	found := other.value
	if encoded {
		found = s.unescape(found, true)
	}
	return s.equals(p, found)
}

// equals compares what another place has with the value of p.
func (s *Source) equals(p *Part, found []byte) Fault {
	value, fault := p.Lookup(s)
	if fault.Reason == reject.Admitted && !bytes.Equal(found, value) {
		fault = ambiguous(reject.PlacesDiffer, p.text)
	}
	return fault
}

// outer is the name without its keys in brackets: "order" of order[sku_id].
func (p *Part) outer() string {
	if i := strings.IndexByte(p.name, '['); i > 0 {
		return p.name[:i]
	}
	return p.name
}

// checkJSON is checkBody for JSON, whose outer names Laravel, ThinkPHP and Rails put among those of the query.
func (s *Source) checkJSON(p *Part, object []byte) Fault {
	if object[0] != '{' {
		return Fault{}
	}
	r := jsonReader{scratch: s.scratch, beans: true}
	text := r.member(object, p.outer(), true)
	s.scratch = r.scratch
	if fault := r.fault(p); fault.Reason != reject.Admitted || text == nil {
		return fault
	}
	found, fault := s.jsonScalar(text, p)
	if fault.Reason != reject.Admitted || p.outer() != p.name { // an object of one place replaces that of the other
		return ambiguous(reject.PlacesDiffer, p.text)
	}
	return s.equals(p, found)
}
