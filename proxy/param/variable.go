// Package param finds the values of $variables in a request. It promises that a value which it returns is the one that
// a server finds which reads the same place of the request, and that a lookup takes time linear in the request. It does
// not guess at a server's framework, and it reads no body from the network. The rules:
//
//   - $(arg_x) is $arg_x where letters follow the name. $form("order[sku_id]") has any name, $json("a.b".c) any key.
//   - A variable names one place: path, query, form, JSON body, header or cookie. Other places are not looked into,
//     but CheckOtherPlace compares the query with the body, whatever its type.
//   - A name that stands twice there is ambiguous. Letter case does not tell names apart (Unicode simple folding, and i
//     as in Java), nor does punctuation in queries, forms and JSON, nor "_" for "-" in names of header fields. A name
//     counts as there only when it is spelled as configured, or where a reader of package readings makes the configured
//     name of it. A list of the name is ambiguous.
//   - Names and values are decoded once: %XX in paths and cookies, %XX and "+" in queries and forms, escapes in JSON.
//   - A value is text in UTF-8, or a whole number in JSON, of which the digits count; anything else is a bad request.
//   - A pair next to ";" in a query or form is ambiguous: some servers split there too.
//   - JSON is application/json, text/json or +json, but no x…+json, and valid (RFC 8259). Beside the element of an
//     array that a path names, no other element may hold the rest of the path.
//   - A form is application/x-www-form-urlencoded without broken escapes, and without "{" or "<" at its start, or
//     multipart/form-data to the letter of RFC 7578, perhaps with lines before its first boundary. A body of another
//     type is a bad request.
//   - Compressed bodies, charsets other than UTF-8 and US-ASCII, and malformed Content-Types are ambiguous. A form may
//     have a charset with the bytes of ASCII where the value has no others.
//   - A SKU or user in a cookie has no space, quote, comma or backslash, else it is ambiguous.
package param

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/proxy/reject"
)

// Variable is a compiled value such as "$cookie_uid" or "$remote_addr/$arg_sku": literals and references in turn. The
// zero value is empty. It is safe for concurrent use.
type Variable struct {
	text  string
	parts []Part
}

// Part is a literal or one reference of a Variable.
type Part struct {
	kind  Kind
	text  string   // a literal, or the reference as configured: "$json_items.0.sku", `$form("order[sku_id]")`
	fixed []byte   // a literal
	name  string   // of the cookie, field, claim …; "-" for "_" in names of header fields
	index int      // of a path's capture
	keys  []string // of JSON: the name, split at dots
}

// Kind says where a Part is looked up.
type Kind uint8

// The kinds.
const (
	Literal      Kind = iota // text that is the same for every request
	RemoteAddr               // $remote_addr, the client's address
	Host                     // $host
	RequestID                // $request_id
	Path                     // $path_x, a {name} of the route's pattern
	Query                    // $arg_x
	Cookie                   // $cookie_x
	Header                   // $http_x
	Form                     // $form_x
	JSON                     // $json_x.y
	Claim                    // $jwt_x
	SignedCookie             // $signed_x
)

// plainNames are the references without a name of their own.
var plainNames = map[string]Kind{"remote_addr": RemoteAddr, "host": Host, "request_id": RequestID}

// prefixes are how the other references begin, up to the "_" before their name.
var prefixes = map[string]Kind{
	"path": Path, "arg": Query, "cookie": Cookie, "http": Header, "form": Form, "json": JSON, "jwt": Claim,
	"signed": SignedCookie,
}

// Compile parses text. names are the {names} of the route's pattern, in the order of Source.Captures. A constant that
// reads like a reference without its "$" is an error.
func Compile(text string, names []string) (Variable, error) {
	v, err := compileText(text, names)
	if err == nil && slices.ContainsFunc(v.parts, func(p Part) bool { return slices.Contains(p.keys, anyElement) }) {
		err = fmt.Errorf(`%q: a star is for sku and quantity of gate "reserve"; write an index in its place`, text)
	}
	if err != nil {
		return Variable{}, err
	}
	return v, nil
}

func compileText(text string, names []string) (Variable, error) {
	if strings.TrimSpace(text) != text {
		return Variable{}, fmt.Errorf("%q begins or ends with a space: write %q", text, strings.TrimSpace(text))
	}
	v := Variable{text: text}
	for text != "" {
		literal, rest, found := strings.Cut(text, "$")
		v.appendLiteral(literal)
		if !found {
			break
		}
		if text, found = strings.CutPrefix(rest, "$"); found {
			v.appendLiteral("$")
			continue
		}
		p, rest, err := parseReferenceOrParentheses(rest, names)
		if err != nil {
			return Variable{}, err
		}
		if p.kind == Path {
			if p.index = slices.Index(names, p.name); p.index < 0 {
				return Variable{}, fmt.Errorf("%s: the pattern has no {%s}: write {%[2]s} into match, or another variable",
					p.text, p.name)
			}
		}
		v.parts, text = append(v.parts, p), rest
	}
	if err := v.checkConstant(names); err != nil {
		return Variable{}, err
	}
	return v, nil
}

// appendLiteral extends a literal at the end of v, so that "a$$b" is one part.
func (v *Variable) appendLiteral(text string) {
	if text == "" {
		return
	}
	if n := len(v.parts); n > 0 && v.parts[n-1].kind == Literal {
		text, v.parts = v.parts[n-1].text+text, v.parts[:n-1]
	}
	v.parts = append(v.parts, Part{kind: Literal, text: text, fixed: []byte(text)})
}

// parseReferenceOrParentheses also parses $form("sku") and $(arg_sku), whose name ends before its word does.
func parseReferenceOrParentheses(text string, names []string) (p Part, rest string, err error) {
	if p, rest, ok, err := parseQuoted(text); ok {
		return p, rest, err
	}
	inside, open := strings.CutPrefix(text, "(")
	if !open {
		if p, rest, err = parseReference(text, names); err == nil {
			err = p.checkBrackets(rest)
		}
		return p, rest, err
	}
	p, rest, quoted, err := parseQuoted(inside)
	if err != nil {
		return p, rest, err
	}
	word, rest, closed := strings.Cut(rest, ")")
	switch {
	case !closed:
		return p, rest, fmt.Errorf(`"$(%.32s": a ")" is missing; write it like $(arg_sku)`, inside)
	case !quoted:
		return parseParentheses(word, rest, names)
	case word != "":
		err = fmt.Errorf(`"$(%.32s": in the parentheses stands one name alone; write %s%s`, inside, p.text, word)
	}
	return p, rest, err
}

// parseParentheses parses what stands in parentheses, before rest.
func parseParentheses(inside, rest string, names []string) (Part, string, error) {
	p, left, err := parseReference(inside, names)
	switch {
	case err != nil || left == "":
	case p.longer(left):
		err = p.checkName()
	default:
		if err = p.checkBrackets(left); err == nil {
			err = fmt.Errorf(`"$(%.32s)": in the parentheses stands one name alone; write it like $(%s)%s`, inside,
				p.text[1:], left)
		}
	}
	return p, rest, err
}

// parseReference parses the reference at the start of text, which follows a "$". names are those of Compile.
func parseReference(text string, names []string) (p Part, rest string, err error) {
	end := nameEnd(text, "")
	if _, ok := plainNames[text[:end]]; !ok {
		joints := "-" // of a cookie-name; a path of JSON keys and indexes x.y.0.z also has dots
		if strings.HasPrefix(text, "json_") {
			joints = "-."
		}
		end = nameEnd(text, joints)
		if within, found := strings.CutPrefix(text[end:], "."+anyElement+"."); found && joints == "-." {
			end = len(text) - len(within) + nameEnd(within, joints)
		}
	}
	word, rest := text[:end], text[end:]
	p.text = "$" + word
	prefix, name, hasName := strings.Cut(word, "_")
	p.kind, p.name = prefixes[prefix], name
	switch kind, ok := plainNames[word]; {
	case ok:
		return Part{kind: kind, text: p.text}, rest, nil
	case word == "":
		return p, rest, errors.New(`a "$" without a name; write "$$" for a dollar sign`)
	case p.kind == Literal || !hasName:
		return p, rest, unknownVariable(p.text, rest, names)
	case name == "":
		return p, rest, fmt.Errorf("%s: a name is missing", p.text)
	case p.kind == Header:
		p.name = strings.ReplaceAll(name, "_", "-")
	case p.kind == JSON:
		p.keys = strings.Split(name, ".")
	}
	return p, rest, nil
}

// nameEnd is where the name at the start of text ends. A joint belongs to it only between two letters.
func nameEnd(text, joints string) int {
	for i := range len(text) {
		if isNameByte(text[i]) {
			continue
		}
		if i == 0 || strings.IndexByte(joints, text[i]) < 0 || i+1 == len(text) || !isNameByte(text[i+1]) {
			return i
		}
	}
	return len(text)
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// String is the variable as configured.
func (v *Variable) String() string { return v.text }

// Empty reports a variable without any part.
func (v *Variable) Empty() bool { return len(v.parts) == 0 }

// Fixed reports a value that is the same for every request.
func (v *Variable) Fixed() bool { return len(v.parts) == 1 && v.parts[0].kind == Literal }

// Uses reports whether one of the parts is of that kind.
func (v *Variable) Uses(kind Kind) bool {
	return slices.ContainsFunc(v.parts, func(p Part) bool { return p.kind == kind })
}

// NeedsBody reports whether Source.Body must have been read before a lookup.
func (v *Variable) NeedsBody() bool { return v.Uses(Form) || v.Uses(JSON) }

// Proven reports a value that the upstream has signed.
func (v *Variable) Proven() bool { return v.Uses(Claim) || v.Uses(SignedCookie) }

// Names are the names of all parts of that kind: of Header, fields with "-"; of Claim, claims.
func (v *Variable) Names(kind Kind) (names []string) {
	for i := range v.parts {
		if v.parts[i].kind == kind {
			names = append(names, v.parts[i].name)
		}
	}
	return names
}

// Parts are the parts in their order. The caller must not change them.
func (v *Variable) Parts() []Part { return v.parts }

// Kind says where the part is looked up.
func (p *Part) Kind() Kind { return p.kind }

// Text is a literal, or the reference as configured: "$json_id".
func (p *Part) Text() string { return p.text }

// Names are the names by which the part is looked up: of JSON the keys on the way, of others one at most.
func (p *Part) Names() []string {
	switch {
	case p.kind == JSON:
		return p.keys
	case p.name == "":
		return nil
	}
	return []string{p.name}
}

// Value is the value of a SKU, user or quantity in the request. It is empty without a fault where the request lacks a
// part of it. In contrast to Part.Lookup, a body of another type than the variable needs is a fault, and so is a cookie
// that servers unescape or end in different ways. The value belongs to the request and to s.
func (v *Variable) Value(s *Source) (value []byte, fault Fault) {
	if len(v.parts) == 1 {
		return v.parts[0].required(s)
	}
	start := len(s.room)
	end := start
	for i := range v.parts {
		value, fault = v.parts[i].required(s)
		if fault.Reason != reject.Admitted || len(value) == 0 {
			s.room = s.room[:start]
			return nil, fault
		}
		// What the lookup left in the room, which may be the value itself, is overwritten.
		s.room = append(s.room[:end], value...)
		end = len(s.room)
	}
	return s.room[start:end:end], Fault{}
}

// required is Lookup with the faults that Variable.Value adds.
func (p *Part) required(s *Source) ([]byte, Fault) {
	switch p.kind {
	case Cookie:
		value, fault := s.Cookie(p.name)
		if fault.Reason == reject.Admitted && isOddCookie(value) {
			fault = ambiguous(reject.ValueInvalid, p.text)
		}
		if fault.Reason != reject.Admitted {
			return nil, fault
		}
		return s.plainCookie(value), Fault{}
	case Form:
		if fault := s.CheckBody(); fault.Reason == reject.Admitted && !s.hasForm() {
			return nil, badRequest(reject.BodyNotForm, p.text)
		}
	case JSON:
		if fault := s.requireJSON(p); fault.Reason != reject.Admitted {
			return nil, fault
		}
	}
	return p.Lookup(s)
}

// Lookup is the value of one part. It is empty without a fault where the request lacks it, also since the body is of
// another type. A cookie lacks what shops trim. The value belongs to the request and to s.
func (p *Part) Lookup(s *Source) (value []byte, fault Fault) {
	switch p.kind {
	case Literal:
		return p.fixed, Fault{}
	case RemoteAddr:
		return s.clientText(), Fault{}
	case Host:
		return s.Host, Fault{}
	case RequestID:
		return s.RequestID, Fault{}
	case Path:
		return s.text(s.Captures[p.index], false, p)
	case Query:
		return s.pair(s.Query, p)
	case Cookie:
		value, fault = s.Cookie(p.name)
		return trimCookie(s.plainCookie(value)), fault
	case Header:
		return s.Header(p.name)
	case Form:
		return s.formField(p)
	case JSON:
		return s.jsonField(p)
	}
	return s.proven(p)
}
