package upstream

import (
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
)

// The response to an order is read as fast as the upstream sends it, however slowly the client reads: the connection is
// free for the next order. It waits in memory, within these bounds. Past them it is handed on as it comes.
const (
	maxBuffered  = 1 << 20  // bytes of one response
	memoryLimit  = 64 << 20 // bytes of all that one Pool holds
	bufferStep   = 64 << 10 // bytes that are reserved at once
	bufferMargin = 16 << 10 // bytes that must be free for a read
)

// memoryBudget is what is left of the memory for responses. It is safe for concurrent use.
type memoryBudget struct{ left atomic.Int64 }

func newMemoryBudget(bytes int64) *memoryBudget {
	m := &memoryBudget{}
	m.left.Store(bytes)
	return m
}

func (m *memoryBudget) reserve(n int64) bool {
	if m.left.Add(-n) >= 0 {
		return true
	}
	m.left.Add(n)
	return false
}

func (m *memoryBudget) release(n int64) { m.left.Add(n) }

// readAhead reads into s.rest until a time, where that is not zero, and reports whether s.rest is then the whole
// response. An error is the upstream's.
func (s *stream) readAhead(until time.Time) (whole bool, err error) {
	for len(s.rest) < maxBuffered && (until.IsZero() || time.Now().Before(until)) {
		if s.body.done {
			return true, nil
		}
		if int64(len(s.rest))+bufferMargin > s.held {
			if !s.target.memory.reserve(bufferStep) {
				return false, nil
			}
			s.held += bufferStep
			s.rest = slices.Grow(s.rest, int(s.held)-len(s.rest))
		}
		n, err := s.body.Read(s.rest[len(s.rest):s.held])
		s.rest = s.rest[:len(s.rest)+n]
		if err != nil && err != io.EOF {
			return false, err
		}
	}
	return s.body.done, nil
}

// bufferable reports a response that may be delivered at its end. One that is known to be too long is not worth
// buffering in part.
func bufferable(h *fasthttp.ResponseHeader, b *body) bool {
	if b.framing == counted && b.left > maxBuffered {
		return false
	}
	return !octets.HasPrefixFold(h.ContentType(), []byte("text/event-stream")) &&
		!octets.EqualFold(h.Peek("X-Accel-Buffering"), "no") // by which an upstream tells nginx the same
}

// bufferedBody is a whole response in memory, for which no connection waits.
type bufferedBody struct {
	rest   []byte
	held   int64
	memory *memoryBudget
}

// Read implements io.Reader.
func (b *bufferedBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Whole is the body, until Close.
func (b *bufferedBody) Whole() []byte { return b.rest }

// Close gives the memory back.
func (b *bufferedBody) Close() error {
	b.memory.release(b.held)
	b.rest, b.held = nil, 0
	return nil
}

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
