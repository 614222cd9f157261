package proxy

import (
	"bytes"
	"unicode/utf8"
)

// Where a field is looked up, the first or the last of two is what the shop reads, and nobody knows which:
// so a name that stands twice, or once in another spelling that some framework folds into it, is Ambiguous.

// decoded undoes percent-encoding, and + where it stands for a space. What is not UTF-8 is no SKU and no user.
func (r *request) decoded(raw []byte, plus bool) ([]byte, Reason) {
	if bytes.IndexByte(raw, '%') < 0 && (!plus || bytes.IndexByte(raw, '+') < 0) {
		if !utf8.Valid(raw) {
			return nil, BadRequest
		}
		return raw, Admitted
	}
	start := len(r.value)
	r.value = append(r.value, raw...)
	v := r.value[start:]
	if plus {
		for i, c := range v {
			if c == '+' {
				v[i] = ' '
			}
		}
	}
	v = unescape(v[:0], v)
	r.value = r.value[:start+len(v)]
	if !utf8.Valid(v) {
		return nil, BadRequest
	}
	return v, Admitted
}

// argument looks a name up in the query; the body may not name it as well.
func (r *request) argument(name string) ([]byte, Reason) {
	v, reason := r.pair(r.query, name)
	if reason != Admitted || len(r.body) == 0 {
		return v, reason
	}
	switch r.media().content {
	case formContent, partsContent:
		if other, reason := r.inForm(name); reason != Admitted || other != nil {
			return nil, Ambiguous
		}
	case jsonContent:
		if !r.parseJSON() {
			return nil, BadRequest
		}
		if other, reason := walkJSON(r.json, []string{name}); reason != Admitted || other != nil {
			return nil, Ambiguous
		}
	}
	return v, Admitted
}

// formField looks a name up in a form; the query may not name it as well.
func (r *request) formField(name string) ([]byte, Reason) {
	if !r.isForm() {
		return nil, BadRequest
	}
	v, reason := r.inForm(name)
	if reason != Admitted {
		return v, reason
	}
	if other, reason := r.pair(r.query, name); reason != Admitted || other != nil {
		return nil, Ambiguous
	}
	return v, Admitted
}

// pair finds name=value in an &-separated list (WHATWG URL, application/x-www-form-urlencoded).
// A value that is there and empty is not nil.
func (r *request) pair(list []byte, name string) (value []byte, reason Reason) {
	for len(list) > 0 {
		var field []byte
		field, list = cut(list, '&')
		key, raw := cut(field, '=')
		// Some parsers also part at ";": a name that follows one might be seen by the shop alone.
		for _, rest := cut(field, ';'); len(rest) > 0; {
			var hidden []byte
			hidden, rest = cut(rest, ';')
			if hidden, _ = cut(hidden, '='); alias(r, hidden, name) {
				return nil, Ambiguous
			}
		}
		if !alias(r, key, name) {
			continue
		}
		if value != nil || string(key) != name || bytes.IndexByte(raw, ';') >= 0 {
			return nil, Ambiguous
		}
		if value, reason = r.decoded(raw, true); reason != Admitted {
			return nil, reason
		}
		if value == nil {
			value = []byte{}
		}
	}
	return value, Admitted
}

func cut(b []byte, sep byte) (before, after []byte) {
	if i := bytes.IndexByte(b, sep); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}
