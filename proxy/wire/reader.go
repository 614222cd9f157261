package wire

import "io"

// Reader hands on the requests of one connection. It belongs to the goroutine that reads; nothing of it may be called
// from another one.
//
// The usual request comes in one piece and is judged where the caller wants it, without a copy. What comes in pieces,
// or behind the end of a request, waits in a buffer from the Guard, which is given back when it is empty.
type Reader struct {
	guard *Guard
	src   io.Reader
	scan  scan // the head being read
	body  body // the body being read
	head  Head // the head handed on last

	kept   *buffer // nil when empty
	ready  int     // how many of the kept bytes were judged and may be handed on
	later  error   // came from src along with bytes
	broken error   // the answer to every later Read
	raw    bool    // see Tunnel
}

// Read hands on bytes of one request. The first bytes of a request come only when its whole head was judged.
// It returns
//   - a Violation when the bytes break a rule, now and ever after. If the request's head was not handed on before,
//     one byte that belongs to no request comes first: the server takes an error without any byte on a kept-alive
//     connection for a silent close, and the client would get no answer;
//   - io.EOF when the connection ended between two requests, or the last one asked to close;
//   - io.ErrUnexpectedEOF when it ended in a body (in a head it is a Violation);
//   - any other error of the connection as it is; but a time-out within a head is a Violation, status 408.
//
// For a good request it does not allocate, unless its pieces need a buffer and none is free.
func (r *Reader) Read(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case r.ready > 0:
		return r.hand(p), nil
	case r.broken != nil:
		return 0, r.broken
	case r.raw:
		return r.fill(p)
	case r.body.place == noBody && r.head.Close:
		return 0, r.refuse(io.EOF) // RFC 9112, 9.6: nothing after "close" is a request
	case r.kept != nil:
		return r.readKept(p)
	}
	return r.readDirect(p)
}

// readDirect reads into p and judges there. Nothing is kept.
func (r *Reader) readDirect(p []byte) (int, error) {
	n, err := r.fill(r.window(p))
	if n == 0 {
		return 0, r.ended(err)
	}
	b := p[:n]
	from, to, kind := r.judge(b)
	if kind != fine && to == 0 {
		return r.violate(p, kind)
	}
	if to == 0 {
		r.keep(b[from:])
		if r.kept == nil { // an empty line, and no more
			return r.readDirect(p)
		}
		return r.readKept(p)
	}
	if kind != fine {
		r.broken = kind.violation()
	} else {
		r.keep(b[to:])
	}
	if from > 0 {
		copy(b, b[from:to])
	}
	return to - from, nil
}

// window is the part of p that may be read into: never beyond a body's end, and at most what a buffer can keep.
func (r *Reader) window(p []byte) []byte {
	if r.body.place == inLength {
		return p[:min(int64(len(p)), r.body.left)]
	}
	return p[:min(len(p), r.guard.large)]
}

// readKept judges the kept bytes, and reads on behind them until there is something to hand on.
func (r *Reader) readKept(p []byte) (int, error) {
	for {
		k := r.kept
		from, to, kind := r.judge(k.b[k.from:k.to])
		if kind != fine && to == 0 {
			return r.violate(p, kind)
		}
		if to > 0 {
			if kind != fine {
				k.to = k.from + to
				r.broken = kind.violation()
			}
			k.from += from
			r.ready = to - from
			return r.hand(p), nil
		}
		if r.drop(from); r.kept == nil {
			return r.readDirect(p)
		}
		if !r.room() {
			return r.violate(p, headerTooLarge)
		}
		n, err := r.fill(r.kept.b[r.kept.to:])
		if n == 0 {
			return r.cutShort(p, err)
		}
		r.kept.to += n
	}
}

// judge goes on with b. At most one request's bytes, b[from:to], may be handed on; b[to:] is not judged yet. Without
// any, to is 0, and the first from bytes may be forgotten. A violation in the same piece as the head refuses the head
// too: what is known to be bad should not begin.
func (r *Reader) judge(b []byte) (from, to int, kind Kind) {
	if r.body.place != noBody {
		to, kind = r.body.read(b)
		return 0, to, kind
	}
	from, to, kind = r.scan.read(r.guard, b)
	if kind != fine || to == 0 {
		return from, 0, kind
	}
	next := body{}
	next.begin(r.scan.Head)
	n, kind := next.read(b[to:])
	if kind != fine {
		return from, 0, kind
	}
	r.head, r.body = r.scan.Head, next
	r.scan = newScan()
	return from, to + n, fine
}
