package proxy

import "bytes"

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
	asMethods, asPaths := [1 + len(methodFields)][]byte{r.method}, [1 + len(targetFields)][]byte{r.path}
	for i, name := range methodFields {
		v, reason := r.header(name)
		if reason != Admitted {
			return reason
		}
		var ok bool
		if asMethods[1+i], ok = methodNamed(v); !ok {
			return Ambiguous
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
		for j, method := range asMethods {
			if i+j > 0 && len(path) > 0 && len(method) > 0 && p.leadsElsewhere(r, method, path) {
				return Ambiguous
			}
		}
	}
	return Admitted
}

// overriddenByForm looks for _method in query and body, where it could make a difference.
func (p *Proxy) overriddenByForm(r *request) Reason {
	form := r.isForm()
	if !form && len(r.query) == 0 || !p.hasGatedSibling(r) {
		return Admitted
	}
	v, reason := r.pair(r.query, methodMember)
	if reason == Admitted && form {
		if reason = p.takeBody(r); reason != Admitted {
			return reason
		}
		if !r.readable() {
			return Ambiguous
		}
		var other []byte
		if other, reason = r.inForm(methodMember); other != nil && v != nil {
			return Ambiguous
		} else if other != nil {
			v = other
		}
	}
	if reason != Admitted || len(v) == 0 {
		return reason
	}
	if method, ok := methodNamed(v); !ok || p.leadsElsewhere(r, method, r.path) {
		return Ambiguous
	}
	return Admitted
}

// hasGatedSibling reports whether the path under another method leads to another, gated route.
func (p *Proxy) hasGatedSibling(r *request) bool {
	for _, m := range methods {
		if m != string(r.method) && p.leadsElsewhere(r, []byte(m), r.path) {
			return true
		}
	}
	return false
}

// leadsElsewhere reports whether some reading of method and path leads to a gated route that is not the request's own.
func (p *Proxy) leadsElsewhere(r *request, method, path []byte) bool {
	caught, found := r.caught, false
	known := r.eachReading(path, func(path []byte, _ int) bool {
		other := p.find(method, path, r, true)
		found = other != r.route && other.gated()
		return !found
	})
	r.caught = caught
	return found || !known
}
