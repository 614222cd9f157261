package upstream

import (
	"io"
	"sync/atomic"
)

// stream is the body of an answer that is handed on while it comes. Whoever got it must close it, which
// fasthttp's server does: until then it owns its connection. Each is used once, so that a late Read
// cannot reach into the next exchange.
type stream struct {
	body     body
	conn     *conn
	target   *target
	rest     []byte // read from the connection, and not handed on
	err      error
	held     int64 // bytes of the room for answers
	reusable bool
	closed   atomic.Bool
	onClose  func()
}

// OnClose has f called once, when the stream is closed. It must be set before the stream is handed on.
func (s *stream) OnClose(f func()) { s.onClose = f }

// Read hands on what has come; it never waits to fill p.
func (s *stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !s.more() {
		return 0, s.err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// more waits until there is something in s.rest; if there will be nothing more, s.err says why.
func (s *stream) more() bool {
	if s.closed.Load() {
		s.rest, s.err = nil, io.ErrClosedPipe
	}
	if len(s.rest) == 0 && s.err == nil {
		s.rest, s.err = s.body.next()
	}
	return len(s.rest) > 0
}

// SupportsBodyWriteTo lets fasthttp use WriteTo, so that each piece goes on in the size in which it came.
func (s *stream) SupportsBodyWriteTo() bool { return true }

// WriteTo hands on each piece as it comes, and flushes w when nothing more waits.
func (s *stream) WriteTo(w io.Writer) (n int64, err error) {
	f, buffered := w.(interface{ Flush() error })
	for s.more() {
		m, err := w.Write(s.rest)
		n += int64(m)
		s.rest = s.rest[m:]
		if err != nil {
			return n, err
		}
		if buffered && s.body.in.buffered() == 0 {
			if err := f.Flush(); err != nil {
				return n, err
			}
		}
	}
	if s.err == io.EOF {
		return n, nil
	}
	return n, s.err
}

// fate is what becomes of the connection when what was read of the answer has been handed on.
func (s *stream) fate() fate {
	if s.reusable && s.body.done && s.body.in.buffered() == 0 {
		return keep
	}
	return shut
}

// Close gives the connection back if the body was read to its very end; else the rest of it would be
// the next shopper's answer, and the connection is closed.
func (s *stream) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	f := s.fate()
	if len(s.rest) > 0 {
		f = shut
	}
	s.target.returned(s.conn, f)
	s.target.room.giveBack(s.held)
	if s.onClose != nil {
		s.onClose()
	}
	return nil
}
