package server

import (
	"bytes"
	"crypto/tls"

	"github.com/valyala/fasthttp"
)

// Foreign is the connection of a request that another fasthttp server has read, and whose answer it writes. The error
// is a ProtocolError where the look rejects the head; there is a connection all the same. Its request cannot wait by
// Suspend, and cannot leave HTTP.
func Foreign(ctx *fasthttp.RequestCtx, l Limits) (*Conn, error) {
	s := &Server{}
	s.SetLimits(l)
	if ctx.IsTLS() {
		s.TLS = new(tls.Config)
	}
	c := newConn(s, ctx.Conn(), peerAddr(ctx.Conn()))
	c.foreign = true
	p := s.parser.Load()
	c.acquire(p)
	x, h := c.exchange, &ctx.Request.Header
	x.request.reset()
	x.request.found(h)
	x.request.HTTP10 = !h.IsHTTP11()
	_, _, rule := x.request.read(p, x.request.appendHead(nil))
	if rule != fine {
		x.request.reset()
		return c, rule.err()
	}
	x.request.found(h)
	x.reader.head = x.request.Head
	if content := ctx.Request.Body(); len(content) > 0 {
		x.reader.body = body{place: inLength, left: int64(len(content))}
		x.reader.src = bytes.NewReader(content)
	}
	return c, nil
}
