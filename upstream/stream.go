package upstream

import (
	"io"
	"sync/atomic"
)

// stream is the body of a response that is handed on while it comes. It owns its connection until it is closed. Each is
// used once, so that a Read after Close cannot reach into the next exchange.
type stream struct {
	body     body
	conn     *conn
	target   *target
	rest     []byte // read from the connection, and not handed on
	held     int64  // bytes of the memory budget
	reusable bool
	closed   atomic.Bool
	onClose  func()
}

// OnClose has f called once, when the stream is closed. It must be set before the stream is handed on.
func (s *stream) OnClose(f func()) { s.onClose = f }

// Read hands on what has come. It never waits to fill p.
func (s *stream) Read(p []byte) (int, error) {
	switch {
	case s.closed.Load():
		return 0, io.ErrClosedPipe
	case len(p) == 0:
		return 0, nil
	case len(s.rest) > 0:
		n := copy(p, s.rest)
		s.rest = s.rest[n:]
		return n, nil
	}
	return s.body.Read(p)
}

// disposition is what becomes of the connection when what was read of the response has been handed on.
func (s *stream) disposition() disposition {
	if s.reusable && s.body.done && s.body.in.buffered() == 0 {
		return mayReuse
	}
	return mustClose
}

// Close gives the connection back if the body was read to its very end. Else the rest of it would be read as the next
// response, and the connection is closed.
func (s *stream) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	d := s.disposition()
	if len(s.rest) > 0 {
		d = mustClose
	}
	s.target.endStream(s.conn, d)
	s.target.memory.release(s.held)
	if s.onClose != nil {
		s.onClose()
	}
	return nil
}
