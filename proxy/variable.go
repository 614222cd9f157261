package proxy

import (
	"errors"
	"fmt"
	"strings"
)

// variable is a compiled value such as "$cookie_uid" or "$remote_addr/$arg_sku": literals and references in turn.
type variable struct {
	parts []part
}

type part struct {
	source source
	name   string // of the cookie, header, field …
	text   []byte // of a literal
	index  int    // of a path capture
	keys   []string
	judged bool // the stock is asked by it: what shops read in several ways is not good enough
}

type source uint8

const (
	literal      source = iota
	remoteAddr          // $remote_addr
	hostHeader          // $host
	requestID           // $request_id
	pathName            // $path_x
	arg                 // $arg_x
	cookie              // $cookie_x
	header              // $http_x
	formField           // $form_x
	jsonField           // $json_x.y
	jwtClaim            // $jwt_x
	signedCookie        // $signed_x
)

// sources by their prefix; the name follows it.
var sources = []struct {
	prefix string
	source source
}{
	{"path_", pathName}, {"arg_", arg}, {"cookie_", cookie}, {"http_", header}, {"form_", formField}, {"json_", jsonField},
	{"jwt_", jwtClaim}, {"signed_", signedCookie},
}

var whole = map[string]source{"remote_addr": remoteAddr, "host": hostHeader, "request_id": requestID}

// compileVariable reads text for a route with the given pattern.
func compileVariable(text string, p *pattern) (v variable, err error) {
	for text != "" {
		lit, rest, found := strings.Cut(text, "$")
		if lit != "" {
			v.parts = append(v.parts, part{source: literal, text: []byte(lit)})
		}
		if !found {
			break
		}
		if strings.HasPrefix(rest, "$") {
			v.parts = append(v.parts, part{source: literal, text: []byte("$")})
			text = rest[1:]
			continue
		}
		var ref part
		if ref, text, err = cutReference(rest); err != nil {
			return v, err
		}
		if ref.source == pathName {
			var ok bool
			if ref.index, ok = p.name(ref.name); !ok {
				return v, fmt.Errorf("$path_%s: the pattern has no {%s}", ref.name, ref.name)
			}
		}
		v.parts = append(v.parts, ref)
	}
	return v, nil
}

// cutReference reads one reference, without its $, from the start of text.
func cutReference(text string) (ref part, rest string, err error) {
	end := nameEnd(text, "")
	if _, ok := whole[text[:end]]; !ok {
		joints := "-" // cookie-name; a path of JSON keys and indexes x.y.0.z also has dots
		if strings.HasPrefix(text, "json_") {
			joints = "-."
		}
		end = nameEnd(text, joints)
	}
	word, rest := text[:end], text[end:]
	if s, ok := whole[word]; ok {
		return part{source: s, name: word}, rest, nil
	}
	for _, s := range sources {
		name, ok := strings.CutPrefix(word, s.prefix)
		if !ok {
			continue
		}
		if name == "" {
			return ref, rest, fmt.Errorf("$%s: a name is missing", word)
		}
		ref = part{source: s.source, name: name}
		switch s.source {
		case header:
			ref.name = strings.ReplaceAll(name, "_", "-")
		case jsonField:
			ref.keys = strings.Split(name, ".")
		}
		return ref, rest, nil
	}
	if word == "" {
		return ref, rest, errors.New(`a "$" without a name; write "$$" for a dollar sign`)
	}
	return ref, rest, fmt.Errorf("$%s: unknown variable; one of $remote_addr $host $request_id $path_x $arg_x $cookie_x $http_x $form_x $json_x $jwt_x $signed_x", word)
}

// nameEnd is where the name at the start of text ends; a joint belongs to it only between letters.
func nameEnd(text, joints string) int {
	for i := range len(text) {
		if isName(text[i : i+1]) {
			continue
		}
		if i == 0 || strings.IndexByte(joints, text[i]) < 0 || i+1 == len(text) || !isName(text[i+1:i+2]) {
			return i
		}
	}
	return len(text)
}

// judge marks all of v.
func (v *variable) judge() {
	for i := range v.parts {
		v.parts[i].judged = true
	}
}

func (v *variable) empty() bool { return len(v.parts) == 0 }

// fixed reports a value that is the same for every request.
func (v *variable) fixed() bool { return len(v.parts) == 1 && v.parts[0].source == literal }

func (v *variable) uses(s source) bool {
	for i := range v.parts {
		if v.parts[i].source == s {
			return true
		}
	}
	return false
}

// value works out v for the request. A lone reference is returned as it lies in the request,
// anything else is put together in r.value. Missing references are empty.
func (v *variable) value(r *request) ([]byte, Reason) {
	if len(v.parts) == 1 {
		return r.look(&v.parts[0])
	}
	start := len(r.value)
	end := start
	for i := range v.parts {
		b, reason := r.look(&v.parts[i])
		if reason != Admitted {
			return nil, reason
		}
		if len(b) == 0 && v.parts[i].source != literal {
			return nil, BadRequest
		}
		r.value = append(r.value[:end], b...) // over what look left there, which may be b itself
		end = len(r.value)
	}
	return r.value[start:], Admitted
}

// look finds one part. What a request says twice, or in two spellings, is Ambiguous.
func (r *request) look(p *part) ([]byte, Reason) {
	switch p.source {
	case literal:
		return p.text, Admitted
	case remoteAddr:
		return r.clientText(), Admitted
	case hostHeader:
		return r.host, Admitted
	case requestID:
		return r.id, Admitted
	case pathName:
		return r.decoded(r.caught[p.index], false)
	case arg:
		return r.argument(p.name)
	case cookie:
		v, reason := r.cookie(p.name)
		if p.judged && oddCookie(v) {
			return nil, Ambiguous
		}
		return r.plainCookie(v), reason
	case header:
		return r.header(p.name)
	case formField:
		return r.formField(p.name)
	case jwtClaim:
		return r.claim(p.name)
	case signedCookie:
		return r.signedValue(p.name)
	default:
		return r.jsonField(p.keys)
	}
}
