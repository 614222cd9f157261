package param

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"sluice/internal/octets"
	"sluice/proxy/reject"
)

// JSON is validated once and then read in place: a tree of a hostile body would take eighty times its memory.

// jsonState is what is known of the body as JSON.
type jsonState uint8

const (
	jsonUnchecked jsonState = iota
	jsonValid
	jsonInvalid
)

// jsonField looks p up in a JSON body.
func (s *Source) jsonField(p *Part) ([]byte, Fault) {
	if fault := s.CheckBody(); fault.Reason != reject.Admitted || !s.hasJSON() {
		return nil, fault
	}
	if fault := s.readJSON(p); fault.Reason != reject.Admitted {
		return nil, fault
	}
	r := jsonReader{scratch: s.scratch, lists: true, beans: true}
	text := r.valueAt(s.Body, p.keys, false)
	s.scratch = r.scratch
	if fault := r.fault(p); fault.Reason != reject.Admitted {
		return nil, fault
	}
	return s.jsonScalar(text, p)
}

// requireJSON rejects a body that by its type is no JSON.
func (s *Source) requireJSON(p *Part) Fault {
	if fault := s.CheckBody(); fault.Reason != reject.Admitted {
		return fault
	}
	switch {
	case s.hasJSON():
		return Fault{}
	case len(s.body()) > 0 && s.mediaType().kind != jsonBody:
		return badRequest(reject.TypeNotJSON, p.text)
	}
	return badRequest(reject.BodyNotJSON, p.text)
}

// readJSON rejects a body that is no JSON.
func (s *Source) readJSON(p *Part) Fault {
	if fault := s.requireJSON(p); fault.Reason != reject.Admitted {
		return fault
	}
	if !s.validJSON() {
		return badRequest(reject.BodyNotJSON, p.text)
	}
	return Fault{}
}

// validJSON reports whether the body is JSON, whatever its type.
func (s *Source) validJSON() bool {
	if s.json == jsonUnchecked {
		s.json = jsonInvalid
		if json.Valid(s.Body) {
			s.json = jsonValid
		}
	}
	return s.json == jsonValid
}

// jsonScalar is the value of p that text is: a string or a whole number of at most 64 bits with its sign, of which the
// digits count; nil where there is no text.
func (s *Source) jsonScalar(text []byte, p *Part) ([]byte, Fault) {
	switch {
	case text == nil:
		return nil, Fault{}
	case text[0] == '"':
		return s.jsonString(text[1:len(text)-1], p)
	case isPlainInteger(text):
		return text, Fault{}
	}
	return nil, badRequest(reject.ValueInvalid, p.text)
}

// jsonString is what stands between the quotes, decoded. Of half a surrogate pair servers make different things: some
// drop it, others replace or keep it.
func (s *Source) jsonString(raw []byte, p *Part) ([]byte, Fault) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, Fault{}
	}
	start, whole := len(s.room), false
	if s.room, whole = AppendJSONString(s.room, raw); !whole {
		return nil, badRequest(reject.BodyNotJSON, p.text)
	}
	return s.room[start:len(s.room):len(s.room)], Fault{}
}

// isPlainInteger excludes 1e3, 1.0, -0 and what 64 bits do not hold, which servers read in different ways.
func isPlainInteger(b []byte) bool {
	for i, c := range b {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return false
		}
	}
	if len(b) < len("-0") || b[0] != '-' && len(b) < len("1000000000000000000") {
		return true
	}
	_, err := strconv.ParseInt(string(b), 10, 64)
	return err == nil && string(b) != "-0"
}

// JSONText is the text of the value at a path of names and indexes, such as `"ok"` or `0`. It is nil when body is not
// JSON, when nothing stands there, and when a name on the path stands twice with different values.
func JSONText(body []byte, keys []string) []byte {
	if !json.Valid(body) {
		return nil
	}
	r := jsonReader{twins: true}
	text := r.valueAt(body, keys, false)
	if r.halfName {
		return nil
	}
	return text
}

// jsonReader reads valid JSON in place.
type jsonReader struct {
	scratch   []byte // one name that was decoded
	duplicate string // the key that stands twice; "" = none does
	lists     bool   // an index means an element of an array, and no member of an object
	object    bool   // an object stands where an index means an array
	halfName  bool   // a name on the way has half a surrogate pair: without it, it may be the key
	twins     bool   // a name that stands twice with the same value counts as one
	beans     bool   // a name of the same letters and digits may be the key
}

// valueAt is the text of the value at keys; nil when there is none. With anyCase a single name in another letter case
// counts as well.
func (r *jsonReader) valueAt(b []byte, keys []string, anyCase bool) []byte {
	text, _ := cutJSONValue(skipJSONSpace(b))
	for i, key := range keys {
		switch {
		case text[0] == '{' && r.lists && isIndex(key):
			r.object = true
			return nil
		case text[0] == '{':
			text = r.member(text, key, anyCase)
		case text[0] == '[':
			text = r.element(text, key, keys[i+1:])
		default:
			return nil
		}
		if text == nil {
			return nil
		}
	}
	return text
}

// member is the value of a name in an object.
func (r *jsonReader) member(object []byte, want string, anyCase bool) []byte {
	var m, like match // like is of names that only some readers take for it
	for b := skipJSONSpace(object[1:]); b[0] != '}'; {
		end := jsonStringEnd(b)
		name, value := b[1:end-1], []byte(nil)
		colon := skipJSONSpace(b[end:])
		value, b = cutJSONValue(skipJSONSpace(colon[1:]))
		if bytes.IndexByte(name, '\\') >= 0 {
			whole := false
			r.scratch, whole = AppendJSONString(r.scratch[:0], name)
			name, r.halfName = r.scratch, r.halfName || !whole
		}
		switch spelling := ofCase(name, want); {
		case spelling == Another && r.beans && sameLetters(name, want):
			like.add(Folded, value)
		case !r.twins || !m.repeats(spelling, value):
			m.add(spelling, value)
		}
		b = skipJSONComma(b)
	}
	switch {
	case m.count > 1, anyCase && like.differs,
		m.count > 0 && like.count > 0 && (like.differs || !bytes.Equal(like.value, m.value)):
		r.duplicate = want
		return nil
	case m.count == 0 && anyCase:
		return like.value
	case m.spelling == Exact || anyCase:
		return m.value
	}
	return nil
}

// element is the value at an index of an array. Where another element holds the rest of the path as well, in any letter
// case, the last key of it counts as one that stands twice: an order of two items is not judged by the first.
func (r *jsonReader) element(array []byte, index string, rest []string) (found []byte) {
	if !isIndex(index) { // Atoi's error would be garbage
		return nil
	}
	at, err := strconv.Atoi(index)
	others := false
	b := skipJSONSpace(array[1:])
	for i := 0; err == nil && b[0] != ']'; i++ {
		var item []byte
		item, b = cutJSONValue(b)
		b = skipJSONComma(b)
		switch {
		case i == at:
			found = item
		case len(rest) > 0 && !others:
			others = r.valueAt(item, rest, true) != nil || r.duplicate != "" || r.object
		}
	}
	r.duplicate, r.object = "", false
	if found != nil && others {
		r.duplicate = rest[len(rest)-1]
		return nil
	}
	return found
}

func isIndex(key string) bool { return strings.Trim(key, "0123456789") == "" }

// fault is a key that stands twice, or may do so, or an object for an array: PHP makes the same of {"0":1} and [1].
func (r *jsonReader) fault(p *Part) Fault {
	switch {
	case r.halfName:
		return badRequest(reject.BodyNotJSON, p.text)
	case r.duplicate != "":
		return ambiguous(reject.DuplicateKey, r.duplicate)
	case r.object:
		return badRequest(reject.ValueInvalid, p.text)
	}
	return Fault{}
}

// cutJSONValue cuts off the value that b begins with.
func cutJSONValue(b []byte) (value, rest []byte) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += jsonStringEnd(b[i:]) - 1
			if depth == 0 {
				return b[:i+1], b[i+1:]
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return b[:i], b[i:]
			}
			if depth == 0 {
				return b[:i+1], b[i+1:]
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return b[:i], b[i:]
			}
		}
	}
	return b, nil
}

// jsonStringEnd is the offset behind the string that b begins with.
func jsonStringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipJSONSpace cuts white space off the front.
func skipJSONSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

// skipJSONComma cuts off what stands between two members or elements.
func skipJSONComma(b []byte) []byte {
	if b = skipJSONSpace(b); b[0] == ',' {
		b = skipJSONSpace(b[1:])
	}
	return b
}

// AppendJSONString appends a string that is valid between its quotes, decoded. Half a surrogate pair becomes U+FFFD.
func AppendJSONString(dst, raw []byte) (decoded []byte, whole bool) {
	whole = true
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), whole
		}
		dst, raw = append(dst, raw[:i]...), raw[i:]
		c := rune(raw[1])
		switch at := strings.IndexByte("bfnrt", raw[1]); {
		case at >= 0:
			c, raw = rune("\b\f\n\r\t"[at]), raw[2:]
		case c != 'u':
			raw = raw[2:]
		default:
			c, raw = hexRune(raw), raw[6:]
			if utf16.IsSurrogate(c) {
				c = utf16.DecodeRune(c, hexRune(raw))
				if c == utf8.RuneError {
					whole = false
				} else {
					raw = raw[6:]
				}
			}
		}
		dst = utf8.AppendRune(dst, c)
	}
}

// hexRune is the code unit of the \uXXXX that b begins with; -1 when b begins otherwise.
func hexRune(b []byte) (c rune) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	for _, digit := range b[2:6] {
		c = c<<4 | rune(octets.Unhex(digit))
	}
	return c
}
