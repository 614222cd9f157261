package upstream

import (
	"time"

	"github.com/valyala/fasthttp"
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
	if !req.Whole && b.streams() && (req.Stream || b.framing == counted) { // HTTP/1.0 clients understand a length too
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

// readBody reads a body whole into resp. Only one that did not come with its head needs the longer deadline.
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
	whole, err := b.appendTo(resp.SwapBody(nil)[:0], e.maxBody)
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
