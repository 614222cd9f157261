package http1

import (
	"errors"
	"io"
)

// reader hands on the requests of one connection. It belongs to the goroutine that reads.
//
// A head is checked where it stays, in the Request that it is read into. What comes along behind it waits in a buffer
// of the parser, which is released when it is empty. Content goes straight from the socket to the caller.
type reader struct {
	parser *parser
	src    io.Reader
	body   body // the body being read
	head   Head // the head handed on last

	kept    *buffer // nil when empty
	skipped bool    // the one empty line before the next head was dropped
	begun   bool    // a part of the next head has come
	later   error   // came from src along with bytes
	broken  error   // the result of all later reading
	raw     bool    // see tunnel
}

func (p *parser) newReader(src io.Reader) *reader {
	return &reader{parser: p, src: src, head: noHead}
}

// readHead reads the next head into q, once all of it was checked; its body comes by readBody. With an error q is
// empty. The error is
//   - a ProtocolError when the bytes break a rule, now and ever after;
//   - io.EOF when the connection ended between two requests, or the last one asked to close; also, now and ever
//     after, when the last one's body was not read to its end: the next head would be read from the middle of it;
//   - any other error of the connection as it is; but a time-out within a head is a ProtocolError, status 408.
//
// It does not allocate, once q has served for a head of the same size and a buffer is free.
func (r *reader) readHead(q *Request) error {
	q.reset()
	switch {
	case r.broken != nil:
		return r.broken
	case r.raw:
		return io.EOF
	case r.body.place != atEnd, r.head.Close: // RFC 9112, section 9.6: nothing after "close" is a request
		return r.fail(io.EOF)
	}
	q.skipped = r.skipped
	err := r.checkHead(q)
	r.skipped, r.begun = q.skipped && err != nil, false
	if err != nil {
		q.reset()
		return err
	}
	r.head = q.Head
	r.body.begin(r.head)
	return nil
}

// checkHead checks what was kept, and then what comes, until there is a head.
func (r *reader) checkHead(q *Request) error {
	if r.kept != nil {
		if whole, err := r.checkKept(q); whole || err != nil {
			return err
		}
	}
	for {
		room := q.room(r.parser)
		if len(room) == 0 { // a head that outgrows the large buffer has outgrown the limit before
			return r.fail(headerTooLarge.err())
		}
		r.begun = q.came > 0
		n, err := r.fill(room)
		if n == 0 {
			return r.cutHead(err)
		}
		q.came += n
		b := q.begun()
		from, to, rule := q.read(r.parser, b)
		switch {
		case rule != fine:
			return r.fail(rule.err())
		case to > 0:
			q.head = b[from:to]
			r.buffer(b[to:])
			return nil
		}
		q.came = copy(b, b[from:])
	}
}

// checkKept checks the kept bytes, and moves the next head out of them as far as it is there.
func (r *reader) checkKept(q *Request) (whole bool, err error) {
	k := r.kept
	b := k.b[k.from:k.to]
	from, to, rule := q.read(r.parser, b)
	if rule != fine {
		return false, r.fail(rule.err())
	}
	if whole = to > 0; !whole {
		to = len(b)
	}
	q.storeHead(r.parser, b[from:to])
	r.drop(to)
	if whole {
		q.head = q.begun()
	}
	return whole, nil
}

// cutHead is what the connection's error means where a head is awaited.
func (r *reader) cutHead(err error) error {
	var late interface{ Timeout() bool }
	switch {
	case !r.begun:
		return err
	case err == io.EOF:
		return r.fail(headCutShort.err())
	case errors.As(err, &late) && late.Timeout():
		return r.fail(headLate.err())
	}
	return r.fail(err)
}

// readBody hands on the content of the body behind the last head, without its framing. It returns
//   - io.EOF at the body's end, and there only, also together with its last bytes;
//   - a ProtocolError when the framing breaks a rule, now and ever after, from readHead too; also together with the
//     last bytes before it;
//   - io.ErrUnexpectedEOF when the connection ended before the body did, or the body was given up;
//   - any other error of the connection as it is. A time-out may be followed by more.
func (r *reader) readBody(p []byte) (int, error) {
	switch {
	case r.body.place == atEnd:
		return 0, io.EOF
	case r.raw, r.broken == io.EOF: // what comes is no body any more, or will never come
		return 0, io.ErrUnexpectedEOF
	case r.broken != nil:
		return 0, r.broken
	case len(p) == 0:
		return 0, nil
	case r.body.content() && r.body.left >= maxPiece, r.body.place == inLength:
		return r.readContent(p)
	}
	return r.readChunks(p)
}

// bodyCame reports that the rest of the body behind the last head has come, so that it is read without a wait. Of
// chunks it is not known.
func (r *reader) bodyCame() bool {
	switch r.body.place {
	case atEnd:
		return true
	case inLength:
		return r.kept != nil && int64(r.kept.to-r.kept.from) >= r.body.left
	}
	return false
}

// readContent hands on content, of which there is some to come. It never reads beyond it.
func (r *reader) readContent(p []byte) (n int, err error) {
	p = p[:min(int64(len(p)), r.body.left)]
	if k := r.kept; k != nil {
		n = copy(p, k.b[k.from:k.to])
		r.drop(n)
	} else if n, err = r.fill(p); n == 0 {
		return 0, r.cutBody(err)
	}
	r.body.skip(n)
	if r.body.place == atEnd {
		err = io.EOF
	}
	return n, err
}

// maxPiece is how much of a body in chunks is read and decoded at once, in bytes. What a piece costs is thereby not
// paid for each chunk.
const maxPiece = 16 << 10

// readChunks hands on the content of all chunks of one piece. The piece is read into p and decoded there. What came
// along behind the body is kept.
func (r *reader) readChunks(p []byte) (n int, err error) {
	p = p[:min(len(p), maxPiece, r.parser.large)]
	for n == 0 && r.body.place != atEnd {
		came := 0
		k := r.kept
		if k != nil {
			came = copy(p, k.b[k.from:k.to])
		} else if came, err = r.fill(p); came == 0 {
			return 0, r.cutBody(err)
		}
		var read int
		var rule Rule
		n, read, rule = r.body.decode(p[:came])
		switch {
		case rule != fine:
			return n, r.fail(rule.err())
		case k != nil:
			r.drop(read)
		default:
			r.buffer(p[read:came])
		}
	}
	if r.body.place == atEnd {
		return n, io.EOF
	}
	return n, nil
}

// cutBody is what the connection's error means within a body.
func (r *reader) cutBody(err error) error {
	if err == io.EOF {
		return r.fail(io.ErrUnexpectedEOF)
	}
	return err
}

// bodyRead reports whether the body behind the last head was read to its end, as one that is not there always was.
func (r *reader) bodyRead() bool { return r.body.place == atEnd }

// drainBody drops what of the body has already come, without waiting for more, and reports whether that was all of
// it. A protocol error among it is met by the next readHead.
func (r *reader) drainBody() bool {
	for r.body.place != atEnd && r.kept != nil && !r.raw {
		_, read, rule := r.body.decode(r.kept.b[r.kept.from:r.kept.to])
		if rule != fine {
			_ = r.fail(rule.err()) // all later reading returns it
			break
		}
		r.drop(read)
	}
	return r.body.place == atEnd
}

// pipelined reports that the last request was read whole, to the last byte of its body, and that bytes behind it have
// come. Asked by src within its own Read, true means that a head has begun and its rest is awaited.
func (r *reader) pipelined() bool {
	return r.body.place == atEnd && (r.kept != nil || r.begun) && !r.raw
}

// tunnel ends the checks: Read hands on all that is yet to come as it is. It is for a connection that has changed its
// protocol. A body that was not read to its end stays so, and comes by Read, chunk lines and all.
func (r *reader) tunnel() { r.raw = true }

// Read hands on what comes after tunnel, as it is.
func (r *reader) Read(p []byte) (int, error) {
	switch {
	case !r.raw:
		panic("BUG: unchecked bytes are read outside of a tunnel")
	case len(p) == 0:
		return 0, nil
	case r.kept != nil:
		n := copy(p, r.kept.b[r.kept.from:r.kept.to])
		r.drop(n)
		return n, nil
	}
	return r.fill(p)
}

// fill reads from src. It returns either bytes or an error.
func (r *reader) fill(p []byte) (int, error) {
	if err := r.later; err != nil {
		r.later = nil
		return 0, err
	}
	for range maxEmptyReads {
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

// maxEmptyReads is how often a source may return neither bytes nor an error before that counts as an error.
const maxEmptyReads = 100

// fail makes err the result of all later reading.
func (r *reader) fail(err error) error {
	r.forget()
	r.broken = err
	return err
}

// buffer copies b, at most parser.large bytes, aside.
func (r *reader) buffer(b []byte) {
	if len(b) == 0 {
		return
	}
	r.kept = r.parser.acquire(len(b))
	r.kept.to = copy(r.kept.b, b)
}

// receive keeps k, the first bytes of a request, which p checks. The reader holds no bytes before.
func (r *reader) receive(p *parser, k *buffer) { r.parser, r.kept = p, k }

// drop forgets the first n of the kept bytes.
func (r *reader) drop(n int) {
	r.kept.from += n
	if r.kept.from == r.kept.to {
		r.forget()
	}
}

// forget drops the kept bytes.
func (r *reader) forget() {
	if r.kept != nil {
		r.parser.release(r.kept)
		r.kept = nil
	}
}
