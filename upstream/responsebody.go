package upstream

import (
	"io"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
	"sluice/upstream/spool"
)

// The response to an order is read as fast as the upstream sends it, however slowly the client reads: the connection is
// free for the next order. It waits in memory, within these bounds. Past them it is handed on as it comes.
const (
	maxBuffered  = 1 << 20  // bytes of one response
	bufferStep   = 64 << 10 // bytes that are reserved at once
	bufferMargin = 16 << 10 // bytes that must be free for a read
)

// readAhead reads into s.rest until a time, where that is not zero, and reports whether s.rest is then the whole
// response. An error is the upstream's.
func (s *stream) readAhead(until time.Time) (whole bool, err error) {
	for len(s.rest) < maxBuffered && (until.IsZero() || time.Now().Before(until)) {
		if s.body.done {
			return true, nil
		}
		if int64(len(s.rest))+bufferMargin > s.held {
			if !s.target.store.Reserve(bufferStep) {
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
	return (b.framing != counted || b.left <= maxBuffered) && !immediate(h)
}

// immediate reports a response that must reach the client as it comes, and that may never end.
func immediate(h *fasthttp.ResponseHeader) bool {
	return octets.HasPrefixFold(h.ContentType(), []byte("text/event-stream")) ||
		octets.EqualFold(h.Peek("X-Accel-Buffering"), "no") // by which an upstream tells nginx the same
}

// bufferedBody is a whole response in memory, for which no connection waits.
type bufferedBody struct {
	rest  []byte
	held  int64
	store *spool.Store
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
	b.store.Release(b.held)
	b.rest, b.held = nil, 0
	return nil
}
