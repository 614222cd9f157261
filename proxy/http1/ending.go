package http1

// Head is what was learned of the request whose head was handed on last.
func (r *Reader) Head() Head { return r.head }

// Pipelined reports that the last request was read whole, to the last byte of its body, and that bytes behind it have
// come. Asked by src within its own Read, true means that a head has begun and its rest is awaited: time now runs for
// the head.
func (r *Reader) Pipelined() bool {
	return r.body.place == noBody && (r.kept != nil || r.begun) && !r.raw
}

// Tunnel ends the judging: all that is yet to come, Read hands on as it is. It is for
// a connection that has changed its protocol, and must not be called before. A body that was not read to its end stays
// so for ever, and comes by Read, chunk lines and all.
func (r *Reader) Tunnel() { r.raw = true }

// Read hands on what comes after Tunnel, as it is.
func (r *Reader) Read(p []byte) (int, error) {
	switch {
	case !r.raw:
		panic("BUG: bytes are wanted that nobody has judged")
	case len(p) == 0:
		return 0, nil
	case r.kept != nil:
		n := copy(p, r.kept.b[r.kept.from:r.kept.to])
		r.drop(n)
		return n, nil
	}
	return r.fill(p)
}
