package http1

import (
	"errors"
	"io"
)

// Reader hands on the requests of one connection. It belongs to the goroutine that reads; nothing of it may be called
// from another one.
//
// A head is judged where it stays, in the room of the Request that it is read into. What comes along behind it waits in a buffer from
// the Guard, which is given back when it is empty. Content goes straight from the socket to whoever asks for it.
type Reader struct {
	guard *Guard
	src   io.Reader
	body  body // the body being read
	head  Head // the head handed on last

	kept    *buffer // nil when empty
	skipped bool    // the one empty line before the next head was dropped
	begun   bool    // a part of the next head lies in the room that is lent for it
	later   error   // came from src along with bytes
	broken  error   // the answer to all later reading
	raw     bool    // see Tunnel
}

// ReadHead reads the next head into q, once all of it was judged; its body comes by ReadBody. With an error q is empty. The error is
//   - a Violation when the bytes break a rule, now and ever after;
//   - io.EOF when the connection ended between two requests, or the last one asked to close; also, now and ever
//     after, when the last one's body was not read to its end: the next head would be read from the middle of it;
//   - any other error of the connection as it is; but a time-out within a head is a Violation, status 408.
//
// For a good request it does not allocate, once q has served for one like it, unless a buffer is needed and none is free.
func (r *Reader) ReadHead(q *Request) error {
	q.Forget()
	switch {
	case r.broken != nil:
		return r.broken
	case r.raw:
		return io.EOF
	case r.body.place != noBody, r.head.Close: // RFC 9112, 9.6: nothing after "close" is a request
		return r.refuse(io.EOF)
	}
	q.skipped = r.skipped
	err := r.readHead(q)
	r.skipped, r.begun = q.skipped && err != nil, false
	if err != nil {
		q.Forget()
		return err
	}
	r.head = q.Head
	r.body.begin(r.head)
	return nil
}

// readHead judges what was kept, and then what comes, until there is a head.
func (r *Reader) readHead(q *Request) error {
	if r.kept != nil {
		if whole, err := r.judgeKept(q); whole || err != nil {
			return err
		}
	}
	for {
		room := q.room(r.guard)
		if len(room) == 0 { // a head that outgrows the large buffer has outgrown the limit before
			return r.refuse(headerTooLarge.violation())
		}
		r.begun = q.came > 0
		n, err := r.fill(room)
		if n == 0 {
			return r.cutShort(err)
		}
		q.came += n
		b := q.begun()
		from, to, kind := q.read(r.guard, b)
		switch {
		case kind != fine:
			return r.refuse(kind.violation())
		case to > 0:
			q.head = b[from:to]
			r.keep(b[to:])
			return nil
		}
		q.came = copy(b, b[from:])
	}
}

// judgeKept judges the kept bytes, and takes the next head out of them as far as it is there.
func (r *Reader) judgeKept(q *Request) (whole bool, err error) {
	k := r.kept
	b := k.b[k.from:k.to]
	from, to, kind := q.read(r.guard, b)
	if kind != fine {
		return false, r.refuse(kind.violation())
	}
	if whole = to > 0; !whole {
		to = len(b)
	}
	q.hold(r.guard, b[from:to])
	r.drop(to)
	if whole {
		q.head = q.begun()
	}
	return whole, nil
}

// cutShort says what the connection's error means where a head is awaited.
func (r *Reader) cutShort(err error) error {
	var late interface{ Timeout() bool }
	switch {
	case !r.begun:
		return err
	case err == io.EOF:
		return r.refuse(headCutShort.violation())
	case errors.As(err, &late) && late.Timeout():
		return r.refuse(headLate.violation())
	}
	return r.refuse(err)
}

// fill reads from src. It returns either bytes or an error.
func (r *Reader) fill(p []byte) (int, error) {
	if err := r.later; err != nil {
		r.later = nil
		return 0, err
	}
	for range stubborn {
		n, err := r.src.Read(p)
		if n > 0 {
			r.later = err
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// stubborn is how often a src may answer with neither byte nor error before that counts as an error.
const stubborn = 100

// refuse makes err the answer to all later reading.
func (r *Reader) refuse(err error) error {
	r.forget()
	r.broken = err
	return err
}
