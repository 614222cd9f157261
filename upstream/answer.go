package upstream

import (
	"bufio"
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// finish reads the body that follows e.head, and fills resp.
func (e *exchange) finish(out *proxy.Outgoing, resp *fasthttp.Response, t *target, early bool) (proxy.Outcome, fate) {
	c := e.conn
	// The head's own bytes are in the inbox, which the body's will overwrite.
	c.kept = e.head.kept
	if e.head.status == switching {
		if early {
			return proxy.Broken, shut
		}
		return e.open(resp, t)
	}
	b := bodyOf(&e.head, out.Head, &c.in)
	reusable := !early && !e.head.close && b.framing != untilClose
	if !out.Whole && streams(&b) && (out.Stream || b.framing == counted) { // a length is understood by clients of HTTP/1.0 too
		return e.lend(out, resp, t, b, reusable)
	}
	resp.ResetBody()
	old := resp.SwapBody(nil)
	whole, err := e.readBody(&b, old[:0], early)
	resp.SwapBody(whole)
	if err == nil {
		err = t.headers.fill(&resp.Header, c.kept)
	}
	if err != nil {
		resp.ResetBody()
		return outcomeOf(err), shut
	}
	if out.Head {
		resp.SkipBody = true
	}
	if !reusable || c.in.buffered() > 0 {
		return proxy.Answered, shut
	}
	return proxy.Answered, keep
}

// readBody reads a body whole. Only one that did not come with its head needs the longer deadline.
func (e *exchange) readBody(b *body, dst []byte, early bool) ([]byte, error) {
	if b.framing != counted || int64(b.in.buffered()) < b.left {
		end := e.start.Add(e.whole)
		if last := time.Now().Add(grace); early && last.After(end) {
			end = last // the whole time went by in writing
		}
		if err := e.conn.SetReadDeadline(end); err != nil {
			return dst, err
		}
	}
	return b.all(dst, e.most)
}

// streams reports a body that is handed on as it comes: a large one, or one whose end nobody knows.
func streams(b *body) bool {
	return b.framing == chunked || b.framing == untilClose || b.left > streamFrom
}

// lend gives the connection to a stream in resp, unless the whole answer can be had at once.
func (e *exchange) lend(out *proxy.Outgoing, resp *fasthttp.Response, t *target, b body, reusable bool) (proxy.Outcome, fate) {
	c := e.conn
	c.in.patience = e.whole
	s := &stream{body: b, conn: c, target: t, reusable: reusable}
	handed := false
	defer func() {
		if !handed {
			t.room.giveBack(s.held)
		}
	}()
	size := -1
	if b.framing == counted {
		size = int(b.left)
	}
	whole := false
	if (out.Order || out.Store) && storable(c.kept, &b) {
		var err error
		until := time.Time{}
		if !out.Order {
			until = e.start.Add(e.whole) // others wait for it, no longer than that
		}
		if whole, err = s.store(until); err != nil {
			return outcomeOf(err), shut
		}
	}
	if err := t.headers.fill(&resp.Header, c.kept); err != nil {
		return proxy.Broken, shut
	}
	handed = true
	if whole {
		resp.SetBodyStream(&stored{s.rest, s.held, t.room}, len(s.rest))
		return proxy.Answered, s.fate()
	}
	// An event stream may have nothing to say for long: its head must not wait for it. What has come with the head
	// leaves with it: one packet, and PHP's streams sometimes overlook a first event that comes right behind the head.
	resp.ImmediateHeaderFlush = c.in.buffered() == 0 && len(s.rest) == 0
	resp.SetBodyStream(s, size)
	return proxy.Answered, lend
}

// headers turns a checked head into fasthttp's form. Only fasthttp's own reader keeps Date and the
// order of repeated fields, and it reads only from a bufio.Reader that holds the head whole.
type headers struct{ pool chan *headerReader }

type headerReader struct {
	bytes bytes.Reader
	buf   *bufio.Reader
}

const headerReaders = 16 // as many as can be at work at once on a large machine; more are made and dropped

func newHeaders() *headers { return &headers{pool: make(chan *headerReader, headerReaders)} }

// fill reads kept into h. Nothing in h is invented: no Content-Type, no Connection.
func (hs *headers) fill(h *fasthttp.ResponseHeader, kept []byte) error {
	var r *headerReader
	select {
	case r = <-hs.pool:
	default:
		r = &headerReader{buf: bufio.NewReaderSize(nil, inboxSize)}
	}
	r.bytes.Reset(kept)
	buf := r.buf
	if len(kept) > buf.Size() {
		buf = bufio.NewReaderSize(nil, len(kept))
	}
	buf.Reset(&r.bytes)
	err := h.Read(buf)
	r.bytes.Reset(nil)
	select {
	case hs.pool <- r:
	default:
	}
	// An answer without Content-Length makes fasthttp's reader ask to close the client's connection.
	// That was between the shop and us.
	h.ResetConnectionClose()
	h.SetNoDefaultContentType(true)
	return err
}
