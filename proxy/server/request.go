package server

import "sluice/internal/octets"

// Request is the head of one request as the strict look has found it: what was learned of it is its Head. Its texts are
// valid until the handler returns. The zero value is empty: without method, target or field.
type Request struct {
	scan
	Method []byte // as received: a token, and case-sensitive (RFC 9110, section 9.1)
	Target []byte // as received: a path with its query, "*", or an absolute URL whose authority is Host
	Path   []byte // of Target, without scheme, authority and query: "*", or it begins with "/"
	Query  []byte // of Target, without its "?"; nil = there is no "?"
	Host   []byte // the field's value, perhaps with a port; empty only where HTTP/1.0 comes without it
	text   []byte // the head as received, of which the others are parts
	lines  []byte // the header lines with their empty line
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

// keep keeps the head that was looked at, with more lines behind it: its bytes are read over when its body is read.
// With Limits.LenientTarget the bytes of the target from 0x80 on are percent-encoded. An absolute target without a path
// asks for "/", or with OPTIONS for a whole server (RFC 9112, section 3.2.4).
func (q *Request) keep(head, more []byte) {
	q.text = append(append(q.text[:0], head...), more...)
	q.lines = q.text[q.linesAt:]
	q.Method, q.Target = q.text[:q.targetAt-1], q.rawTarget(q.text)
	if q.Path = q.Target[q.pathAt:q.pathEnd]; len(q.Path) == 0 {
		if q.Path = slash; q.queryAt == 0 && string(q.Method) == "OPTIONS" {
			q.Path = asterisk
		}
	}
	if q.queryAt > 0 {
		q.Query = q.Target[q.queryAt:]
	}
	if q.hostAt > 0 {
		q.Host = q.text[q.hostAt:q.hostEnd]
	}
}

// inherit gives q the fields of came, whose lines follow its own, but those that drops reports, and what is known of
// them; not what is about the connection.
func (q *Request) inherit(came *Request, drops func(name []byte) bool) {
	shift := uint32(len(q.lines) - len(came.lines))
	for _, f := range came.fields {
		if !drops(came.lines[f.at:f.colon]) {
			q.fields = append(q.fields, spot{f.at + shift, f.colon + shift, f.from + shift, f.to + shift})
		}
	}
	q.Head = came.Head
	q.Upgrade, q.H2C, q.Expect100, q.Named = false, false, false, false
}

var slash, asterisk = []byte("/"), []byte("*")

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
