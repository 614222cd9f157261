package proxy

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/valyala/fastjson"
)

var errBodyTooLarge = errors.New("body over max_body_size")

// readBody takes the whole body of a gated request into memory, at most max bytes. A length that was announced is
// judged before a byte of it is waited for; the buffer grows with what arrives, never with what was announced.
func (r *request) readBody(max int64) error {
	if r.bodyRead {
		return nil
	}
	if r.head().ContentLength > max {
		return errBodyTooLarge
	}
	err := r.readUpTo(max + 1)
	if err == nil && !r.bodyRead {
		err = errBodyTooLarge
	}
	return err
}

// readUpTo reads on until the body has ended or most bytes of it are in memory.
func (r *request) readUpTo(most int64) error {
	b := r.bodyBuffer[:len(r.body)]
	var err error
	for err == nil && int64(len(b)) < most {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		var n int
		n, err = r.conn.ReadBody(b[len(b):min(int64(cap(b)), most)])
		b = b[:len(b)+n]
	}
	r.bodyBuffer, r.body = b[:0], b
	if err == io.EOF {
		r.bodyRead, err = true, nil
	}
	return err
}

func (r *request) isForm() bool {
	return mediaType(r.ctx.Request.Header.ContentType(), "application/x-www-form-urlencoded")
}

// isJSON also takes text/json and application/…+json (RFC 6839).
func (r *request) isJSON() bool {
	t, _ := cut(r.ctx.Request.Header.ContentType(), ';')
	t = bytes.TrimSpace(t)
	return equalFold(t, "application/json") || equalFold(t, "text/json") || len(t) > 5 && equalFold(t[len(t)-5:], "+json")
}

func mediaType(contentType []byte, want string) bool {
	t, _ := cut(contentType, ';')
	return equalFold(bytes.TrimSpace(t), want)
}

// readable reports whether the gate reads the body's bytes as the shop will: not compressed, and UTF-8.
func (r *request) readable() bool {
	f := r.fields()
	for name, value, ok := f.next(); ok; name, value, ok = f.next() {
		if equalFold(name, "Content-Encoding") && len(value) > 0 {
			return false
		}
	}
	return utf8.Valid(r.body)
}

// jsonField walks to a field. Keys that stand twice at any step of the way, also in other letter case, are
// Ambiguous: fastjson's Get would take the first of them, most shops take the last.
func (r *request) jsonField(keys []string) ([]byte, Reason) {
	if !r.isJSON() {
		return nil, BadRequest
	}
	if r.json == nil {
		if r.parser == nil {
			r.parser = new(fastjson.Parser)
		}
		parsed, err := r.parser.ParseBytes(r.body)
		if err != nil {
			return nil, BadRequest
		}
		r.json = parsed
	}
	v, reason := walkJSON(r.json, keys)
	if v == nil || reason != Admitted {
		return nil, reason
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
	for _, key := range keys {
		switch v.Type() {
		case fastjson.TypeObject:
			var found *fastjson.Value
			seen, exact := 0, false
			v.GetObject().Visit(func(k []byte, child *fastjson.Value) {
				if equalFold(k, key) {
					seen++
					exact = string(k) == key
					found = child
				}
			})
			if seen > 1 || seen == 1 && !exact {
				return nil, Ambiguous
			}
			if found == nil {
				return nil, Admitted
			}
			v = found
		case fastjson.TypeArray:
			i, err := strconv.Atoi(key)
			items := v.GetArray()
			if err != nil || i >= len(items) {
				return nil, Admitted
			}
			v = items[i]
		default:
			return nil, Admitted
		}
	}
	return v, Admitted
}
