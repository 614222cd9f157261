package server

import "sluice/internal/octets"

// Request is the head of one request as the strict look has found it: what was learned of it is its Head. Method,
// target and fields are valid until the handler returns. The zero value is empty: without method, target or field.
type Request struct {
	scan
	text       []byte // the head as received, of which the others are parts
	method, at []byte // at is the target
	lines      []byte // the header lines with their empty line
}

// usualFields is how many field positions a Request keeps room for from one head to the next.
const usualFields = 64

// reset empties q.
func (q *Request) reset() {
	fields := q.fields[:0]
	if cap(fields) > usualFields {
		fields = nil
	}
	*q = Request{scan: scan{Head: noHead, fields: fields}, text: q.text[:0]}
}

// keep keeps the head that was looked at: its bytes are read over when its body is read.
func (q *Request) keep(head []byte) {
	q.text = append(q.text[:0], head...)
	q.method, q.at, q.lines = q.text[:q.targetAt-1], q.rawTarget(q.text), q.text[q.linesAt:]
}

// Method is the method as received. It is a token and case-sensitive (RFC 9110, section 9.1).
func (q *Request) Method() []byte { return q.method }

// Target is the request target as received: a path with its query, "*", or an absolute URL whose authority is Host.
// With Limits.LenientTarget its bytes from 0x80 on are percent-encoded.
func (q *Request) Target() []byte { return q.at }

// Path is the target's path as received, without scheme, authority and query. It is "/" where an absolute target has
// none, and "*" for OPTIONS of a whole server (RFC 9112, section 3.2.4).
func (q *Request) Path() []byte {
	switch {
	case q.pathEnd > q.pathAt:
		return q.at[q.pathAt:q.pathEnd]
	case q.authorityEnd == 0:
		return nil // the zero Request
	case q.queryAt == 0 && string(q.method) == "OPTIONS":
		return asterisk
	}
	return slash
}

var slash, asterisk = []byte("/"), []byte("*")

// Query is the target's query as received, without its "?"; nil when there is no "?", and empty when nothing follows
// it.
func (q *Request) Query() []byte {
	if q.queryAt == 0 {
		return nil
	}
	return q.at[q.queryAt:]
}

// Host is the value of Host, perhaps with a port. It is empty only where HTTP/1.0 comes without the field.
func (q *Request) Host() []byte {
	if q.hostAt == 0 {
		return nil
	}
	return q.lines[q.hostAt-q.linesAt : q.hostEnd-q.linesAt]
}

// Fields calls yield with the name and the value of each field, in their order, until yield returns false.
func (q *Request) Fields(yield func(name, value []byte) bool) {
	for i := range q.fields {
		f := &q.fields[i]
		if !yield(q.lines[f.at:f.colon], q.lines[f.from:f.to]) {
			return
		}
	}
}

// Peek is the value of the first field of that name, in any letter case; nil when there is none. All look-ups of one
// value are by Peek: fasthttp's own compares bytes where names are kept as they came.
func (q *Request) Peek(name string) []byte {
	for i := range q.fields {
		f := &q.fields[i]
		if int(f.colon-f.at) == len(name) && octets.EqualFold(q.lines[f.at:f.colon], name) {
			return q.lines[f.from:f.to]
		}
	}
	return nil
}
