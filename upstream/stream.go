package upstream

import (
	"io"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// budget is the memory for responses that are read whole and wait for their clients. It is safe for concurrent use.
type budget struct {
	size, used atomic.Int64 // bytes
}

// reserve takes n bytes; false = there are not so many.
func (b *budget) reserve(n int64) bool {
	if b.used.Add(n) <= b.size.Load() {
		return true
	}
	b.used.Add(-n)
	return false
}

// ahead is what was read of a body before it was handed on. A response that is read whole is nothing more: no
// connection waits for its client.
type ahead struct {
	bytes  []byte
	held   int64 // bytes of memory
	memory *budget
}

// read reads b while the memory lasts, up to maxAhead bytes and its deadline, and reports whether this is all of it.
// The first streamFrom bytes are not counted. An error is the upstream's.
func (a *ahead) read(b *body) (whole bool, err error) {
	for most := streamFrom; ; most *= 2 {
		a.bytes, err = b.appendTo(a.bytes, most)
		switch {
		case err == nil:
			return true, nil
		case isTimeout(err):
			return false, nil
		case err != errOver:
			return false, err
		case most == maxAhead || !a.memory.reserve(int64(most)):
			return false, nil
		}
		a.held += int64(most)
	}
}

// handOn puts the whole body into resp. A large one is a stream there, whose end gives the memory back.
func (a *ahead) handOn(resp *fasthttp.Response) {
	if a.held == 0 {
		resp.SwapBody(a.bytes)
		resp.Header.SetContentLength(len(a.bytes))
		return
	}
	resp.SetBodyStream(&wholeBody{*a}, len(a.bytes))
}

// Read implements io.Reader. The memory is given back with the last byte.
func (a *ahead) Read(p []byte) (int, error) {
	if len(a.bytes) == 0 {
		return 0, io.EOF
	}
	n := copy(p, a.bytes)
	if a.bytes = a.bytes[n:]; len(a.bytes) == 0 {
		a.release()
	}
	return n, nil
}

func (a *ahead) release() {
	a.memory.used.Add(-a.held)
	a.bytes, a.held = nil, 0
}

// wholeBody is the body stream of a response that is in memory.
type wholeBody struct{ ahead }

// Whole is the body, until it is read or closed.
func (w *wholeBody) Whole() []byte { return w.bytes }

// Close gives the memory back.
func (w *wholeBody) Close() error {
	w.release()
	return nil
}

// stream is the body of a response that is handed on while it comes. It owns its connection until the body has ended.
// Each is used once, so that a Read after Close cannot reach into the next exchange. It belongs to one goroutine.
type stream struct {
	ahead    ahead
	body     body
	conn     *conn
	target   *target
	reusable bool
	err      error // how it ended; nil = the connection is its own
	onEnd    func(broken bool)
}

// OnEnd has f called once, when the upstream has sent all, has broken off, or the stream is closed. It must be set
// before the stream is handed on. A second f is called behind the first.
func (s *stream) OnEnd(f func(broken bool)) {
	if first := s.onEnd; first != nil {
		s.onEnd = func(broken bool) { first(broken); f(broken) }
		return
	}
	s.onEnd = f
}

// Read hands on what has come. It never waits to fill p.
func (s *stream) Read(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case len(s.ahead.bytes) > 0:
		return s.ahead.Read(p)
	case s.err != nil:
		return 0, s.err
	}
	n, err := s.body.Read(p)
	if err == nil && s.body.done {
		err = io.EOF
	}
	if err != nil {
		s.end(err)
	}
	return n, err
}

// end gives the connection back. err is io.EOF where the body is whole, and io.ErrClosedPipe where the client left.
func (s *stream) end(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	broken := err != io.EOF && err != io.ErrClosedPipe
	if broken {
		s.target.logCut(err)
	}
	s.target.endStream(s.conn, s.body.disposition(s.reusable))
	if s.onEnd != nil {
		s.onEnd(broken)
	}
}

// Close ends the stream. A connection of which the body was not read to its very end is closed: the rest would be read
// as the next response.
func (s *stream) Close() error {
	s.end(io.ErrClosedPipe)
	s.err = io.ErrClosedPipe
	s.ahead.release()
	return nil
}
