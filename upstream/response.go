package upstream

import (
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
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
		return e.openTunnel(req, resp, t)
	}
	b := bodyOf(&e.head, resp.SkipBody, &c.in)
	reusable := !early && !e.head.close && b.framing != untilClose
	if !req.Whole && b.streams() {
		return e.handOn(req, resp, t, b, reusable)
	}
	if err := e.readBody(&b, resp, early); err != nil {
		return outcomeOf(err), mustClose
	}
	return Answered, b.disposition(reusable)
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

// readBody reads a body whole into resp; one of more than MaxWhole bytes is an error.
func (e *exchange) readBody(b *body, resp *fasthttp.Response, early bool) error {
	if b.framing == bodiless {
		return nil
	}
	b.in.until = e.start.Add(e.total)
	if early { // the whole time may have gone by in writing
		if last := time.Now().Add(earlyGrace); last.After(b.in.until) {
			b.in.until = last
		}
	}
	whole, err := b.appendTo(resp.SwapBody(nil)[:0], MaxWhole)
	resp.SwapBody(whole)
	if err == nil && resp.Header.ContentLength() != len(whole) {
		resp.Header.SetContentLength(len(whole))
	}
	return err
}

// A response is read before it is handed on while it comes so fast, and has at most maxAhead bytes: its connection is
// free however slowly its client reads.
const (
	maxAhead = 1 << 20               // bytes
	promptly = 10 * time.Millisecond // for a body of unknown length: others are streamed, and must not be delayed
)

// handOn hands on a body that is large or of unknown length: whole where it can be had in time, else as a stream that
// takes the connection.
func (e *exchange) handOn(req *Request, resp *fasthttp.Response, t *target, b body, reusable bool) (
	Outcome, disposition) {
	in, a, size := &e.conn.in, ahead{memory: t.memory}, -1
	if b.framing == counted {
		size = int(b.left)
	}
	handedOn := false
	defer func() {
		if !handedOn {
			a.release()
		}
	}()
	if size <= maxAhead && !immediate(&resp.Header) {
		in.until = e.start.Add(e.total)
		if size < 0 && !req.Order && !req.Store {
			in.until = time.Now().Add(promptly)
		}
		a.bytes = resp.SwapBody(nil)[:0]
		switch whole, err := a.read(&b); {
		case err != nil:
			return outcomeOf(err), mustClose
		case whole:
			handedOn = true
			a.handOn(resp)
			return Answered, b.disposition(reusable)
		}
	}
	if len(a.bytes) == 0 {
		a.release()
	}
	if !t.hold(e.conn, req) {
		return Capped, mustClose
	}
	handedOn = true
	in.until, in.perRead = time.Time{}, e.total
	// The head of an event stream must not wait for the first event. What has come with the head leaves with it, as
	// some clients miss a first event in a packet of its own.
	resp.ImmediateHeaderFlush = in.buffered() == 0 && len(a.bytes) == 0
	resp.SetBodyStream(&stream{ahead: a, body: b, conn: e.conn, target: t, reusable: reusable}, size)
	resp.Header.Del(fasthttp.HeaderTransferEncoding) // fasthttp has just added it, as the last
	return Answered, streaming
}

// immediate reports a response that must reach the client as it comes, and that may never end.
func immediate(h *fasthttp.ResponseHeader) bool {
	return octets.HasPrefixFold(h.ContentType(), []byte("text/event-stream")) ||
		octets.EqualFold(h.Peek("X-Accel-Buffering"), "no") // by which an upstream tells nginx the same
}
