package wire

import "io"

// Reader hands on the requests of one connection. It belongs to the goroutine that reads; nothing of it may be called
// from another one.
//
// The usual head comes in one piece and is judged where the caller wants it, without a copy. A head that comes in
// pieces, and what comes along behind a head, waits in a buffer from the Guard, which is given back when it is empty.
// Content goes straight from the socket to whoever asks for it.
type Reader struct {
	guard *Guard
	src   io.Reader
	scan  scan // the head being read
	body  body // the body being read
	head  Head // the head handed on last, or begun to be

	kept   *buffer // nil when empty
	ready  int     // how many of the kept bytes were judged and may be handed on
	later  error   // came from src along with bytes
	broken error   // the answer to all later reading
	raw    bool    // see Tunnel
}

// Read hands on heads, one at a time and each only when all of it was judged; bodies come by ReadBody.
// It returns
//   - a Violation when the bytes break a rule, now and ever after. One byte that belongs to no request comes first:
//     the server takes an error without any byte on a kept-alive connection for a silent close, and the client would
//     get no answer;
//   - io.EOF when the connection ended between two requests, or the last one asked to close; also, now and ever
//     after, when the last one's body was not read to its end: the next head would be read from the middle of it;
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
	case r.body.place != noBody, r.head.Close: // RFC 9112, 9.6: nothing after "close" is a request
		return 0, r.refuse(io.EOF)
	case r.kept != nil:
		return r.readKept(p)
	}
	return r.readDirect(p)
}

// readDirect reads into p and judges there. What lies behind the head is kept.
func (r *Reader) readDirect(p []byte) (int, error) {
	n, err := r.fill(p[:min(len(p), r.guard.large)]) // at most what a buffer can keep
	if n == 0 {
		return 0, err
	}
	b := p[:n]
	from, to, kind := r.judge(b)
	if kind != fine {
		return r.violate(p, kind)
	}
	if to > 0 {
		r.keep(b[to:])
		copy(b, b[from:to])
		return to - from, nil
	}
	r.keep(b[from:])
	if r.kept == nil { // an empty line, and no more
		return r.readDirect(p)
	}
	return r.readKept(p)
}

// readKept judges the kept bytes, and reads on behind them until there is a head to hand on.
func (r *Reader) readKept(p []byte) (int, error) {
	for {
		k := r.kept
		from, to, kind := r.judge(k.b[k.from:k.to])
		if kind != fine {
			return r.violate(p, kind)
		}
		if to > 0 {
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

// judge goes on with the head in b. When it is whole, b[from:to] may be handed on; b[to:] is not judged yet. Until
// then to is 0, and the first from bytes may be forgotten.
func (r *Reader) judge(b []byte) (from, to int, kind Kind) {
	from, to, kind = r.scan.read(r.guard, b)
	if kind != fine || to == 0 {
		return from, 0, kind
	}
	r.head = r.scan.Head
	r.body.begin(r.head)
	r.scan = newScan()
	return from, to, fine
}
