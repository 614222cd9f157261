package proxy

import (
	"bytes"

	"github.com/valyala/fastjson"
)

// Some frameworks take the method of a request, or its path, from elsewhere than its first line: out of a header that
// clients behind old firewalls send, or out of a form, since browsers' forms know GET and POST alone. A request is
// refused as ambiguous when the shop might so see another, gated route.

// The fields, and the member of a form. Their other spellings, X_HTTP_Method, are refused on the wire.
var (
	methodFields = [...]string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"}
	targetFields = [...]string{"X-Original-URL", "X-Rewrite-URL"}
)

const methodMember = "_method"

var methods = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// methodNamed is the method that v names, in any letter case. A list is none: which of it counts, nobody knows.
func methodNamed(v []byte) (method []byte, ok bool) {
	for _, m := range methods {
		if equalFold(v, m) {
			return []byte(m), true
		}
	}
	return v, !bytes.ContainsAny(v, ", ;")
}

// overridden looks for another, gated route that the shop would see if it took method or path from elsewhere.
func (p *Proxy) overridden(r *request) Reason {
	if r.asked.Override {
		if reason := p.overriddenByFields(r); reason != Admitted {
			return reason
		}
	}
	if p.formMethods && string(r.method) == "POST" {
		return p.overriddenByForm(r)
	}
	return Admitted
}

func (p *Proxy) overriddenByFields(r *request) Reason {
	asMethods, asPaths := append(make([][]byte, 0, 1+len(methodFields)), r.method), [1 + len(targetFields)][]byte{r.path}
	for _, name := range methodFields {
		v, reason := r.header(name)
		if reason != Admitted {
			return reason
		}
		method, ok := methodNamed(v)
		if !ok {
			return Ambiguous
		}
		if len(method) > 0 {
			asMethods = append(asMethods, method)
		}
	}
	for i, name := range targetFields {
		v, reason := r.header(name)
		if reason != Admitted {
			return reason
		}
		if asPaths[1+i], _ = splitTarget(v); len(v) > 0 && !bytes.HasPrefix(asPaths[1+i], []byte("/")) {
			return Ambiguous
		}
	}
	for i, path := range asPaths {
		some := asMethods
		if i == 0 {
			some = some[1:] // the request as it is has been looked at
		}
		if len(path) > 0 && len(some) > 0 && p.leadsElsewhere(r, path, some...) {
			return Ambiguous
		}
	}
	return Admitted
}

// overriddenByForm looks for _method in query and body, where it could make a difference.
func (p *Proxy) overriddenByForm(r *request) Reason {
	bodied := r.isForm() || r.namesJSON()
	if !bodied && len(r.query) == 0 || !p.hasGatedSibling(r) {
		return Admitted
	}
	v, reason := r.pair(r.query, methodMember)
	if reason == Admitted && bodied {
		if reason = p.takeBody(r); reason != Admitted {
			return reason
		}
		if !r.readable() {
			return Ambiguous
		}
		var other []byte
		if other, reason = r.methodInBody(); other != nil && v != nil {
			return Ambiguous
		} else if other != nil {
			v = other
		}
	}
	if reason != Admitted || len(v) == 0 {
		return reason
	}
	if method, ok := methodNamed(v); !ok || p.leadsElsewhere(r, r.path, method) {
		return Ambiguous
	}
	return Admitted
}

// methodInBody looks for _method in a form, or in JSON, which Laravel takes for one; nil when it is not there. A body can be
// called both.
func (r *request) methodInBody() (named []byte, reason Reason) {
	if r.isForm() {
		if named, reason = r.inForm(methodMember); reason != Admitted || named != nil {
			return named, reason
		}
	}
	if !r.namesJSON() {
		return nil, Admitted
	}
	return r.methodInJSON()
}

func (r *request) methodInJSON() (named []byte, reason Reason) {
	if !r.parseJSON() {
		if mentions(r.body, methodMember) {
			reason = Ambiguous
		}
		return nil, reason
	}
	if r.json.Type() != fastjson.TypeObject {
		return nil, Admitted
	}
	r.json.GetObject().Visit(func(key []byte, v *fastjson.Value) {
		if string(key) != methodMember || v.Type() != fastjson.TypeString {
			return
		}
		if named != nil {
			reason = Ambiguous
		}
		named = v.GetStringBytes()
	})
	return named, reason
}

// mentions reports whether somebody could find a name in a body that the gate does not take for JSON, being nested deeply, with
// comments, a mark of the byte order, or half a surrogate: in clear, or with letters that nobody escapes who has no reason.
func mentions(body []byte, name string) bool {
	for _, trace := range [...]string{name, `\u005`, `\u006`, `\u007`} {
		if bytes.Contains(body, []byte(trace)) {
			return true
		}
	}
	return false
}

// namesJSON reports a Content-Type in which somebody could read that the body is JSON: Laravel looks for the word alone.
func (r *request) namesJSON() bool {
	const word = "json"
	media := r.asked.Peek("Content-Type")
	for i := range media {
		if len(media)-i >= len(word) && equalFold(media[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// hasGatedSibling reports whether the path under another method leads to another, gated route.
func (p *Proxy) hasGatedSibling(r *request) bool {
	others := make([][]byte, 0, len(methods))
	for _, m := range methods {
		if m != string(r.method) {
			others = append(others, []byte(m))
		}
	}
	return p.leadsElsewhere(r, r.path, others...)
}

// leadsElsewhere reports whether some reading of path, with one of these methods, leads to a gated route that is not the request's own.
func (p *Proxy) leadsElsewhere(r *request, path []byte, methods ...[]byte) bool {
	caught, found := r.caught, false
	known := r.eachReading(path, func(path []byte, _ int) bool {
		for _, method := range methods {
			other := p.nearer(p.find(method, path, r, true), method, path, r)
			if found = other != r.route && other.gated(); found {
				break
			}
		}
		return !found
	})
	r.caught = caught
	return found || !known
}
