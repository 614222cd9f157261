package server

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// exchange is one request and its answer, with all that reading and writing them needs. It is pooled: a connection
// has one while it is served, and none while it waits.
type exchange struct {
	ctx     fasthttp.RequestCtx
	link    link // what ctx takes for its connection
	request Request
	other   Request // room for Substitute
	toHEAD  bool    // the request that came is HEAD: the answer has no body
	parsed  bool    // request was read into ctx too
	unread  error   // by which that failed
	reader  *reader
	ready   Prepared // what of the answer is not in ctx.Response
	text    []byte   // the answer as it is sent, or its head
}

// link is a connection that is exchanged for another: RequestCtx.Init2 is called once.
type link struct{ *Conn }

// maxKeptText is the size up to which the buffer for an answer is kept for the next exchange, in bytes.
const maxKeptText = 32 << 10

func (p *parser) newExchange() *exchange {
	x := &exchange{reader: p.newReader(nil)}
	x.ctx.Init2(&x.link, nil, true)
	x.ctx.Response.Header.SetNoDefaultContentType(true)
	return x
}

// acquire gives c an exchange, which reads first before anything else.
func (c *Conn) acquire(p *parser, first ...byte) {
	x, ok := c.server.exchanges.Get().(*exchange)
	if !ok {
		x = p.newExchange()
	}
	x.link.Conn, c.exchange = c, x
	x.reader.reset(p, socket{c}, first...)
}

// release takes the exchange away.
func (c *Conn) release() {
	x := c.exchange
	c.exchange, x.link.Conn = nil, nil
	x.reader.giveBack()
	x.reader.src = nil
	if !x.reader.grown { // fasthttp keeps room for a head as large
		c.server.exchanges.Put(x)
	}
}

// Of is the connection that a request of a Server came on, and false for a request of another server.
func Of(ctx *fasthttp.RequestCtx) (c *Conn, ok bool) {
	l, ok := ctx.Conn().(*link)
	if !ok {
		return nil, false
	}
	return l.Conn, true
}

// Ctx is the request under way and its answer.
func (c *Conn) Ctx() *fasthttp.RequestCtx { return &c.exchange.ctx }

// Prepared is room for the answer under way.
func (c *Conn) Prepared() *Prepared { return &c.exchange.ready }

// Request is the head of the request under way.
func (c *Conn) Request() *Request { return &c.exchange.request }

// Parse has fasthttp read the head into ctx.Request. Its error is a ProtocolError where fasthttp reads the head in
// another way than the look: then nothing may come of the request. More calls cost nothing. A request that is rejected
// needs none, nor one of which ctx.Request is made out of Request.
func (c *Conn) Parse() error {
	x := c.exchange
	if x.parsed || c.foreign {
		return x.unread
	}
	x.parsed = true
	if !x.reader.parse(&x.request, &x.ctx.Request.Header) {
		c.server.protocolErrors[otherReading].Add(1)
		x.unread = x.reader.fail(otherReading.err())
	}
	return x.unread
}

// Substitute makes the request under way another one: a proxy asks about a request that it has received. head is the
// request line of that one with its Host, a whole head; the other fields are those that came, but those that drops
// reports. head is looked at as one that comes on the connection, and the error is the ProtocolError where the look
// rejects it. The answer and the body stay those of the request that came, and so do their framings.
func (c *Conn) Substitute(head []byte, drops func(name []byte) bool) error {
	x := c.exchange
	x.other.reset()
	_, end, rule := x.other.read(x.reader.parser, head)
	if rule == fine && end != len(head) {
		rule = otherReading
	}
	if rule != fine {
		x.request.reset()
		c.server.protocolErrors[rule].Add(1)
		return rule.err()
	}
	x.other.keep(head[:len(head)-len("\r\n")], x.request.lines)
	x.other.inherit(&x.request, drops)
	x.request, x.other = x.other, x.request
	return nil
}

// serveRequests serves the request whose first bytes have come, and those that came along behind it. It reports
// whether the connection waits for another one; else the connection is closed.
func (s *Server) serveRequests(c *Conn) (more bool) {
	x := c.exchange
	more = x.serve(c)
	for more && x.reader.pipelined() {
		more = x.serve(c)
	}
	var behind []byte // what came along behind a request that leaves HTTP
	if c.upgraded != nil {
		behind = append(behind, x.reader.came()...)
	}
	c.release()
	if c.upgraded != nil {
		runTunnel(c, behind)
	}
	if !more {
		c.close()
	}
	return more
}

// serve reads one request and writes its answer, or suspends it. It reports whether another may follow on the
// connection.
func (x *exchange) serve(c *Conn) (more bool) {
	defer x.reset()
	c.phase.Store(phaseBusy)
	if err := x.reader.readHead(&x.request); err != nil {
		x.answerError(c, err)
		return false
	}
	x.toHEAD = string(x.request.Method) == "HEAD"
	c.beginRequest()
	c.server.handler.Handle(&x.ctx)
	if c.resumed = false; c.suspension != nil {
		x.suspend(c)
		return true
	}
	return x.writeAnswer(c)
}

// answerError answers what is no valid request. The end of the connection, or a time-out, needs no answer.
func (x *exchange) answerError(c *Conn, err error) {
	e, ok := err.(ProtocolError)
	if !ok {
		return
	}
	c.writeBudget = 0
	x.reject(c, e)
	c.lingerOnClose = true
	_ = x.write(c, byLength, int64(len(x.ctx.Response.Body())), true)
}

// reject has the handler answer what is no valid request.
func (x *exchange) reject(c *Conn, e ProtocolError) {
	c.server.protocolErrors[e.Rule].Add(1)
	x.ctx.Response.SetStatusCode(e.Status)
	c.server.handler.ProtocolError(&x.ctx, e)
}

// writeAnswer writes the answer, and reports whether another request may follow.
func (x *exchange) writeAnswer(c *Conn) (more bool) {
	if c.upgraded != nil && x.ctx.Response.StatusCode() != fasthttp.StatusSwitchingProtocols {
		_ = c.upgraded.Close() // the handler failed behind Tunnel: client and upstream are not joined
		c.upgraded, c.closeAfter = nil, true
	}
	frame, length := x.framing()
	last := c.upgraded == nil && x.isLast(c, frame)
	if err := x.write(c, frame, length, last); err != nil {
		if c.upgraded != nil {
			_ = c.upgraded.Close()
			c.upgraded = nil
		}
		return false
	}
	switch {
	case last || c.upgraded != nil:
		return false
	case c.discardPending && !c.discardRest():
		c.lingerOnClose = true
		return false
	}
	return true
}

// isLast reports whether the connection ends with the answer. A connection whose client did not ask for the end
// lingers: a next request, which is not answered, may have come or be on its way.
func (x *exchange) isLast(c *Conn, frame framing) bool {
	last := x.request.Close || c.closeAfter || frame == untilClose || c.server.announced.Load()
	whole := x.reader.drainBody()
	if !whole && !c.discardPending {
		last = true
	}
	c.lingerOnClose = last && (!x.request.Close || !whole || x.reader.pipelined())
	return last
}

// reset empties x for the next request. It closes a body stream that was not written.
func (x *exchange) reset() {
	x.request.reset()
	x.toHEAD = false
	if x.parsed {
		x.parsed, x.unread = false, nil
		x.ctx.Request.Reset()
	}
	x.ctx.Response.Reset()
	x.ctx.Response.Header.SetNoDefaultContentType(true)
	x.ready.Fields = x.ready.Fields[:0]
	if cap(x.text) > maxKeptText || cap(x.ready.Body) > maxKeptText {
		x.text, x.ready.Body = nil, nil
	}
}

// Read reads raw, a whole request as it would arrive from peer, without a socket. Its error is a ProtocolError when raw
// is not valid HTTP/1.1. What is read of it is not pooled.
func Read(raw string, peer netip.Addr, l Limits) (*Conn, error) {
	s := &Server{}
	s.Use(l, Options{})
	c := newConn(s, script{Reader: strings.NewReader(raw)}, peer)
	c.acquire(s.parser.Load())
	x := c.exchange
	if err := x.reader.readHead(&x.request); err != nil {
		return nil, err
	}
	c.beginRequest()
	return c, nil
}

// script is a connection on which one text arrives, and then nothing.
type script struct {
	io.Reader
	net.Conn // nil
}

func (s script) Read(p []byte) (int, error)     { return s.Reader.Read(p) }
func (script) Write(p []byte) (int, error)      { return len(p), nil }
func (script) Close() error                     { return nil }
func (script) SetReadDeadline(time.Time) error  { return nil }
func (script) SetWriteDeadline(time.Time) error { return nil }
