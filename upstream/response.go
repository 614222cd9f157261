package upstream

import (
	"io"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
	"sluice/upstream/spool"
)

// receive fills resp from the head in e.head, which is still in the buffer, and the body that follows it.
func (e *exchange) receive(req *Request, resp *fasthttp.Response, t *target, early bool) (Outcome, disposition) {
	c := e.conn
	if err := e.parseHeader(&resp.Header); err != nil {
		return Broken, mustClose
	}
	resp.ResetBody()
	resp.SkipBody, resp.ImmediateHeaderFlush = req.HTTP.Header.IsHead(), false
	if e.head.status == switching {
		if early {
			return Broken, mustClose
		}
		return e.openTunnel(resp, t)
	}
	b := bodyOf(&e.head, resp.SkipBody, &c.in)
	reusable := !early && !e.head.close && b.framing != untilClose
	if !req.Whole && b.streams() {
		return e.startStream(req, resp, t, b, reusable)
	}
	if err := e.readBody(&b, resp, early); err != nil {
		return outcomeOf(err), mustClose
	}
	if !reusable || c.in.buffered() > 0 {
		return Answered, mustClose
	}
	return Answered, mayReuse
}

// parseHeader has fasthttp read what the check has left of the head. Nothing in h is invented: no Content-Type, no
// Connection. A response without Content-Length makes fasthttp ask to close the client's connection, which it does not
// concern.
func (e *exchange) parseHeader(h *fasthttp.ResponseHeader) error {
	in := e.conn.in.buf
	if _, err := in.Discard(e.head.skip); err != nil {
		return err
	}
	h.EnableNormalizing()
	if err := h.Read(in); err != nil {
		return err
	}
	h.ResetConnectionClose()
	h.SetNoDefaultContentType(true)
	if len(e.head.encoding) > 0 {
		h.SetContentEncodingBytes(e.head.encoding)
	}
	return nil
}

// readBody reads a body whole into resp; one of more than MaxWhole bytes is an error. Only one that did not come with
// its head needs the longer deadline.
func (e *exchange) readBody(b *body, resp *fasthttp.Response, early bool) error {
	if b.framing == bodiless {
		return nil
	}
	if b.framing != counted || int64(b.in.buffered()) < b.left {
		end := e.start.Add(e.total)
		if last := time.Now().Add(earlyGrace); early && last.After(end) {
			end = last // the whole time went by in writing
		}
		if err := e.conn.SetReadDeadline(end); err != nil {
			return err
		}
	}
	whole, err := b.appendTo(resp.SwapBody(nil)[:0], MaxWhole)
	resp.SwapBody(whole)
	if err == nil && resp.Header.ContentLength() != len(whole) {
		resp.Header.SetContentLength(len(whole))
	}
	return err
}

// startStream gives the connection to a stream in resp, unless the whole response can be had at once.
func (e *exchange) startStream(req *Request, resp *fasthttp.Response, t *target, b body, reusable bool) (
	Outcome, disposition) {
	c := e.conn
	direct := immediate(&resp.Header)
	if (direct || b.framing == counted && b.left > t.store.Most()) && !t.holdConn(c) {
		return Capped, mustClose
	}
	c.in.perRead = e.total
	s := newStream(b, c, t, reusable)
	s.direct = direct
	handedOn := false
	defer func() {
		if !handedOn {
			t.store.Release(s.held)
		}
	}()
	size := -1
	if b.framing == counted {
		size = int(b.left)
	}
	whole := false
	if (req.Order || req.Store) && bufferable(&resp.Header, &b) {
		var err error
		until := time.Time{}
		if !req.Order {
			until = e.start.Add(e.total) // others wait for it, no longer than that
		}
		if whole, err = s.readAhead(until); err != nil {
			return outcomeOf(err), mustClose
		}
	}
	handedOn = true
	if whole {
		resp.SetBodyStream(&bufferedBody{s.rest, s.held, t.store}, len(s.rest))
		return Answered, s.disposition()
	}
	// The head of an event stream must not wait for the first event. What has come with the head leaves with it, as
	// some clients miss a first event in a packet of its own.
	resp.ImmediateHeaderFlush = c.in.buffered() == 0 && len(s.rest) == 0
	resp.SetBodyStream(s, size)
	resp.Header.Del(fasthttp.HeaderTransferEncoding) // fasthttp has just added it, as the last
	return Answered, streaming
}

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
