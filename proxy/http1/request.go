package http1

import "sluice/internal/octets"

// Request is the head of one request; what was learned of it is its Head. What its methods return lies in the
// connection's buffers: it is valid until the handler returns. The zero value is empty: without method, target or
// field.
type Request struct {
	scan
	head []byte // from its first byte to its empty line

	own      []byte  // buffer for a head of usual size; nil = not made yet
	borrowed *buffer // buffer for a larger one; nil = none
	lender   *parser
	came     int // bytes in the buffer while the head is read
}

// usualHead is the size of a buffer that most heads fit into. Beyond it a large buffer is borrowed.
const usualHead = 4 << 10

// usualFields is how many field positions a Request keeps room for from one head to the next.
const usualFields = 64

// reset empties q, and releases what it has borrowed.
func (q *Request) reset() {
	if q.borrowed != nil {
		q.lender.release(q.borrowed)
	}
	fields := q.fields[:0]
	if cap(fields) > usualFields {
		fields = nil
	}
	*q = Request{scan: scan{Head: noHead, fields: fields}, own: q.own}
}

// Method is the method as received. It is a token and case-sensitive (RFC 9110, section 9.1).
func (q *Request) Method() []byte { return q.head[:q.methodEnd] }

// Target is the request target as received: a path with its query, "*", or an absolute URL whose authority is Host.
// With Limits.LenientTarget its bytes from 0x80 on are percent-encoded.
func (q *Request) Target() []byte { return q.rawTarget(q.head) }

// Path is the target's path as received, without scheme, authority and query. It is "/" where an absolute target has
// none, and "*" for OPTIONS of a whole server (RFC 9112, section 3.2.4).
func (q *Request) Path() []byte {
	switch {
	case q.pathEnd > q.pathAt:
		return q.rawTarget(q.head)[q.pathAt:q.pathEnd]
	case q.authorityEnd == 0:
		return nil // the zero Request
	case q.queryAt == 0 && string(q.Method()) == "OPTIONS":
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
	return q.rawTarget(q.head)[q.queryAt:]
}

// Host is the value of Host, perhaps with a port. It is empty only where HTTP/1.0 comes without the field.
func (q *Request) Host() []byte { return q.head[q.hostAt:q.hostEnd] }

// Fields calls yield with the name and the value of each field, in their order, until yield returns false.
func (q *Request) Fields(yield func(name, value []byte) bool) {
	for i := range q.fields {
		f := &q.fields[i]
		if !yield(q.head[f.at:f.colon], q.head[f.from:f.to]) {
			return
		}
	}
}

// Peek is the value of the first field of that name, in any letter case; nil when there is none.
func (q *Request) Peek(name string) []byte {
	for i := range q.fields {
		f := &q.fields[i]
		if octets.EqualFold(q.head[f.at:f.colon], name) {
			return q.head[f.from:f.to]
		}
	}
	return nil
}

// room is where the next bytes of the head go; empty when there is no more than the limits allow.
func (q *Request) room(p *parser) []byte {
	switch {
	case q.borrowed != nil:
		return q.borrowed.b[q.came:]
	case q.own == nil:
		q.own = make([]byte, usualHead)
	case q.came == len(q.own):
		q.borrow(p)
		return q.borrowed.b[q.came:]
	}
	return q.own[q.came:]
}

// borrow moves what has come to a large buffer.
func (q *Request) borrow(p *parser) {
	q.borrowed, q.lender = p.acquire(p.large), p
	copy(q.borrowed.b, q.own[:q.came])
}

// storeHead stores b, at most as much as a buffer keeps, as the beginning of the head.
func (q *Request) storeHead(p *parser, b []byte) {
	if len(b) > usualHead {
		q.borrow(p)
	}
	q.came = copy(q.room(p), b)
}

// begun is what has come of the head.
func (q *Request) begun() []byte {
	if q.borrowed != nil {
		return q.borrowed.b[:q.came]
	}
	return q.own[:q.came]
}
