package http1

import "io"

// ReadBody hands on the content of the body behind the last head, without its framing: what is left of
// Content-Length, or what the chunks hold. It returns
//   - io.EOF at the body's end, and there only, also together with its last bytes;
//   - a Violation when the framing breaks a rule, now and ever after, from ReadHead too;
//   - io.ErrUnexpectedEOF when the connection ended before the body did, or the body was given up (see ReadHead, Tunnel);
//   - any other error of the connection as it is. A time-out may be followed by more.
//
// By itself it does not allocate, unless framing comes in pieces and no
// buffer is free.
func (r *Reader) ReadBody(p []byte) (int, error) {
	for {
		switch {
		case r.body.place == noBody:
			return 0, io.EOF
		case r.raw, r.broken == io.EOF: // what comes is no body any more, or will never come: not a body's end
			return 0, io.ErrUnexpectedEOF
		case r.broken != nil:
			return 0, r.broken
		case len(p) == 0:
			return 0, nil
		case r.body.content():
			return r.readContent(p)
		}
		if err := r.readFraming(); err != nil {
			return 0, err
		}
	}
}

// readContent hands on content, of which there is some to come. It never reads beyond it.
func (r *Reader) readContent(p []byte) (n int, err error) {
	p = p[:min(int64(len(p)), r.body.left)]
	if k := r.kept; k != nil {
		n = copy(p, k.b[k.from:k.to])
		r.drop(n)
	} else if n, err = r.fill(p); n == 0 {
		return 0, r.cutBody(err)
	}
	r.body.skip(n)
	if r.body.place == noBody {
		err = io.EOF
	}
	return n, err
}

// readFraming judges framing up to the next content or the body's end. Of what came along, the rest is kept.
func (r *Reader) readFraming() error {
	if r.kept == nil {
		k := r.guard.acquire(1)
		n, err := r.fill(k.b)
		if n == 0 {
			r.guard.release(k)
			return r.cutBody(err)
		}
		k.to = n
		r.kept = k
	}
	n, kind := r.body.framing(r.kept.b[r.kept.from:r.kept.to])
	r.drop(n)
	if kind != fine {
		return r.refuse(kind.violation())
	}
	return nil
}

// cutBody says what the connection's error means within a body.
func (r *Reader) cutBody(err error) error {
	if err == io.EOF {
		return r.refuse(io.ErrUnexpectedEOF)
	}
	return err
}

// BodyRead reports whether the body behind the last head was read to its end, as one that is not there always was.
func (r *Reader) BodyRead() bool { return r.body.place == noBody }

// DrainBody forgets what of the body has already come, without waiting for more, and reports whether that was all of
// it. A violation among it is met by the next ReadHead.
func (r *Reader) DrainBody() bool {
	for r.body.place != noBody && r.kept != nil && !r.raw { // without kept bytes, readFraming would wait
		if r.body.content() {
			r.drop(r.body.skip(r.kept.to - r.kept.from))
		} else if r.readFraming() != nil {
			break
		}
	}
	return r.body.place == noBody
}
