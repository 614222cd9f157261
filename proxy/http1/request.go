package http1

// Request is the head of one request as it was judged, and its only form; what was learned of it is its Head.
// Reader.ReadHead reads one after the other into it. What its methods return lies in its room, and stays as it is until
// the next head is read or Forget is called. The zero value is ready, and empty: without method, target or field.
type Request struct {
	scan
	head []byte // as far as it is handed on: from its first byte, which a method that has moved leaves behind, to its empty line

	own      []byte  // room for what is usual; nil = not made yet
	borrowed *buffer // room for more; nil = none
	lender   *Guard
	came     int // bytes in the room while the head is read
}

// usualHead is the room for a head that most have enough of. Beyond it a large buffer is borrowed from the Guard.
const usualHead = 2 * smallBuffer

// usualFields is how many fields a Request remembers the places of from one head to the next.
const usualFields = 64

// Forget empties q. What it has borrowed goes back.
func (q *Request) Forget() {
	if q.borrowed != nil {
		q.lender.release(q.borrowed)
	}
	fields := q.fields[:0]
	if cap(fields) > usualFields {
		fields = nil
	}
	*q = Request{scan: scan{Head: noHead, fields: fields}, own: q.own}
}

// Method is the request's method.
func (q *Request) Method() []byte { return q.head[q.methodAt:q.methodEnd] }

// Target is the path and query as they were received, or "*".
func (q *Request) Target() []byte { return q.head[q.targetAt:q.targetEnd] }

// Host is the host that the client asks for, perhaps with a port.
func (q *Request) Host() []byte { return q.head[q.hostAt:q.hostEnd] }

// Text is the whole head in its canonical form.
func (q *Request) Text() []byte { return q.head[q.methodAt:] }

// Fields calls yield with the name and the value of each field, in their order, until it has seen enough.
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
		if equal(q.head[f.at:f.colon], name) {
			return q.head[f.from:f.to]
		}
	}
	return nil
}

// room is where the next bytes of the head go; empty when there is no more than the limits allow.
func (q *Request) room(g *Guard) []byte {
	switch {
	case q.borrowed != nil:
		return q.borrowed.b[q.came:]
	case q.own == nil:
		q.own = make([]byte, usualHead)
	case q.came == len(q.own):
		q.borrow(g)
		return q.borrowed.b[q.came:]
	}
	return q.own[q.came:]
}

// borrow moves what has come to a large buffer.
func (q *Request) borrow(g *Guard) {
	q.borrowed, q.lender = g.acquire(g.large), g
	copy(q.borrowed.b, q.own[:q.came])
}

// hold takes b, at most as much as a buffer keeps, for the beginning of the head.
func (q *Request) hold(g *Guard, b []byte) {
	if len(b) > usualHead {
		q.borrow(g)
	}
	q.came = copy(q.room(g), b)
}

// begun is what has come of the head.
func (q *Request) begun() []byte {
	if q.borrowed != nil {
		return q.borrowed.b[:q.came]
	}
	return q.own[:q.came]
}
