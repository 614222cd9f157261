package upstream

import (
	"io"
	"sync"
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
	memory *budget
	buffer *[]byte // what bytes is a part of, of a size in buffers; nil = at most streamFrom bytes, which do not count
	small  []byte  // what bytes was a part of before: the response's own
}

// buffers are those of 2, 4 and so on times streamFrom bytes, and one byte that shows that a body is longer.
var buffers [maxAhead / streamFrom]sync.Pool // of *[]byte, by how often

// read reads b while the memory lasts, up to maxAhead bytes and its deadline, and reports whether this is all of it. An
// error is the upstream's.
func (a *ahead) read(b *body) (whole bool, err error) {
	for most := streamFrom; ; {
		a.bytes, err = b.appendTo(a.bytes, most)
		switch {
		case err == nil:
			return true, nil
		case isTimeout(err):
			return false, nil
		case err != errOver:
			return false, err
		}
		for most *= 2; b.framing == counted && int64(most) < b.left; {
			most *= 2
		}
		if most > maxAhead || !a.enlarge(most) {
			return false, nil
		}
	}
}

// enlarge makes room for n bytes; false = there is no memory for them.
func (a *ahead) enlarge(n int) bool {
	if !a.memory.reserve(int64(n)) {
		return false
	}
	larger, _ := buffers[n/streamFrom-1].Get().(*[]byte)
	if larger == nil {
		made := make([]byte, n+1)
		larger = &made
	}
	bytes := append((*larger)[:0], a.bytes...)
	if a.buffer == nil {
		a.small = a.bytes
	}
	a.release()
	a.bytes, a.buffer = bytes, larger
	return true
}

// handOn puts the whole body into resp. A large one is a stream there, whose end gives the memory back.
func (a *ahead) handOn(resp *fasthttp.Response) {
	if a.buffer == nil {
		resp.SwapBody(a.bytes)
		resp.Header.SetContentLength(len(a.bytes))
		return
	}
	resp.SwapBody(a.small)
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
	if a.buffer != nil {
		n := len(*a.buffer) - 1
		buffers[n/streamFrom-1].Put(a.buffer)
		a.memory.used.Add(-int64(n))
	}
	a.bytes, a.buffer = nil, nil
}

// wholeBody is the body stream of a response that is in memory.
type wholeBody struct{ ahead }

// Whole is the body, until it is read to its end or closed: then its memory is used again.
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
