package wire

import (
	"errors"
	"io"
)

// Head is what was learned of the request whose head was handed on last. It is replaced when the next one's first
// bytes are.
func (r *Reader) Head() Head { return r.head }

// HeadLeft reports that a part of the last head was not handed on yet: p was too small for all of it.
func (r *Reader) HeadLeft() bool { return r.ready > 0 && !r.raw }

// AtBoundary reports that the last request was read whole, to the last byte of its body, and that no byte of a
// next one has come: the connection is idle, and may be closed without an answer. It says nothing about the bytes
// that the server has not consumed yet.
func (r *Reader) AtBoundary() bool {
	return r.body.place == noBody && r.kept == nil && r.broken == nil && !r.raw
}

// Pipelined reports that the last request was read whole, to the last byte of its body, and that bytes behind it wait
// here. Asked by src within its own Read, true means that a head has begun and its rest is awaited: time now runs for
// the head, while the server still believes that the connection is idle.
func (r *Reader) Pipelined() bool {
	return r.body.place == noBody && r.kept != nil && r.ready == 0
}

// Tunnel ends the judging: all that was not handed on, and all that is yet to come, Read hands on as it is. It is for
// a connection that has changed its protocol, and must not be called before. A body that was not read to its end stays
// so for ever, and comes by Read, chunk lines and all.
func (r *Reader) Tunnel() {
	r.raw = true
	if r.kept != nil {
		r.ready = r.kept.to - r.kept.from
	}
}

// hand gives judged bytes out of the buffer.
func (r *Reader) hand(p []byte) int {
	k := r.kept
	n := copy(p, k.b[k.from:k.from+r.ready])
	r.ready -= n
	r.drop(n)
	return n
}

// stubborn is how often a src may answer with neither byte nor error before that counts as an error.
const stubborn = 100

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

// violate refuses what comes next. A refused head is announced by one byte; '?' is as good as any that ends no line.
func (r *Reader) violate(p []byte, kind Kind) (int, error) {
	r.refuse(kind.violation())
	p[0] = '?'
	return 1, nil
}

// refuse makes err the answer to all later reading.
func (r *Reader) refuse(err error) error {
	r.forget()
	r.broken = err
	return err
}

// cutShort says what the connection's error means within a head.
func (r *Reader) cutShort(p []byte, err error) (int, error) {
	var late interface{ Timeout() bool }
	switch {
	case err == io.EOF:
		return r.violate(p, headCutShort)
	case errors.As(err, &late) && late.Timeout():
		return r.violate(p, headLate)
	}
	return 0, r.refuse(err)
}
