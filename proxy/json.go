package proxy

import (
	"bytes"
	"strconv"

	"github.com/valyala/fastjson"
)

// parseJSON parses the body once. What only some parsers take for JSON is none: a bad escape, a control character, half
// a surrogate pair, which one drops, another replaces and a third keeps.
func (r *request) parseJSON() bool {
	if r.json != nil {
		return true
	}
	if deep(r.body) || fastjson.ValidateBytes(r.body) != nil || !wholePairs(r.body) {
		return false
	}
	if r.parser == nil {
		r.parser = new(fastjson.Parser)
	}
	parsed, err := r.parser.ParseBytes(r.body)
	if err != nil {
		return false
	}
	r.json = parsed
	return true
}

// deep reports nesting beyond what the parser reads. The validator, which knows no bound, writes of what is wrong inside once more
// for each level that it leaves: eight thousand open brackets would cost it five seconds.
func deep(b []byte) bool {
	level, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
			if c == '\\' {
				i++
			}
		case c == '[' || c == '{':
			if level++; level > fastjson.MaxDepth {
				return true
			}
		case c == ']' || c == '}':
			level--
		}
	}
	return false
}

// wholePairs reports whether in valid JSON each escaped surrogate has its other half beside it.
func wholePairs(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return true
		}
		high, ok := surrogate(b[i:])
		switch {
		case !ok:
			b = b[i+2:]
			continue
		case !high:
			return false
		}
		if high, ok = surrogate(b[i+6:]); !ok || high {
			return false
		}
		b = b[i+12:]
	}
}

// surrogate reports whether b begins with \uD800 to \uDFFF, and whether that is a first half.
func surrogate(b []byte) (high, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' || lower(b[2]) != 'd' {
		return false, false
	}
	n := unhex(b[3])
	return n < 12, n >= 8 && n < 16
}

// jsonField walks to a field. Names that stand twice at any step of the way, also in a spelling that some library takes
// for the same, are Ambiguous: fastjson's Get would take the first of them, most shops take the last. So is a name that
// the query has too, since some frameworks merge the two.
func (r *request) jsonField(keys []string) ([]byte, Reason) {
	if !r.isJSON() || !r.parseJSON() {
		return nil, BadRequest
	}
	v, reason := walkJSON(r.json, keys)
	if v == nil || reason != Admitted {
		return nil, reason
	}
	if r.queryNames(keys[0]) {
		return nil, Ambiguous
	}
	switch v.Type() {
	case fastjson.TypeString:
		return v.GetStringBytes(), Admitted
	case fastjson.TypeNumber:
		start := len(r.value)
		r.value = v.MarshalTo(r.value)
		if number := r.value[start:]; plainInteger(number) {
			return number, Admitted
		}
	}
	return nil, BadRequest
}

// queryNames reports whether the query names a member, or something within it: name, name[x], name.x.
func (r *request) queryNames(name string) bool {
	for list := r.query; len(list) > 0; {
		var key []byte
		key, list = cut(list, '&')
		key, _ = cut(key, '=')
		within, _ := cut(key, '.')
		if alias(r, key, name) || alias(r, within, name) {
			return true
		}
	}
	return false
}

// plainInteger refuses 1e3 and 1.0, which shops read as they like, and what a float64 would round.
func plainInteger(b []byte) bool {
	for i, c := range b {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return false
		}
	}
	return len(b) > 0 && len(b) <= 15 && (b[0] != '0' || len(b) == 1)
}

func walkJSON(v *fastjson.Value, keys []string) (*fastjson.Value, Reason) {
	for i, key := range keys {
		var reason Reason
		switch v.Type() {
		case fastjson.TypeObject:
			v, reason = member(v.GetObject(), key)
		case fastjson.TypeArray:
			v, reason = element(v.GetArray(), key, keys[i+1:])
		default:
			return nil, Admitted
		}
		if v == nil || reason != Admitted {
			return nil, reason
		}
	}
	return v, Admitted
}

// member finds a name in an object; nil when it is not there.
func member(o *fastjson.Object, name string) (found *fastjson.Value, reason Reason) {
	seen, exact := 0, false
	o.Visit(func(k []byte, child *fastjson.Value) {
		if sameMember(k, name) {
			seen++
			exact = string(k) == name
			found = child
		}
	})
	if seen > 1 || seen == 1 && !exact {
		return nil, Ambiguous
	}
	return found, Admitted
}

// element finds a place in an array; nil when it is not there. What lies beyond may not be in another element as well:
// an order of two things is not to be judged by the first.
func element(items []*fastjson.Value, place string, beyond []string) (*fastjson.Value, Reason) {
	at, err := strconv.Atoi(place)
	if err != nil || at < 0 || at >= len(items) {
		return nil, Admitted
	}
	for i, other := range items {
		if i == at || len(beyond) == 0 {
			continue
		}
		if v, reason := walkJSON(other, beyond); v != nil || reason != Admitted {
			return nil, Ambiguous
		}
	}
	return items[at], Admitted
}
