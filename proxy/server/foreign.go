package server

import (
	"bytes"
	"crypto/tls"
	"slices"

	"github.com/valyala/fasthttp"
)

// What is of another server's connections. Their times are that server's.
var foreignPlain, foreignSecure = Options{}, Options{TLS: new(tls.Config)}

// Foreign is the connection of a request that another fasthttp server has read, and whose answer it writes. The error
// is a ProtocolError where the look rejects the head; there is a connection all the same. Its request cannot wait by
// Suspend, and cannot leave HTTP.
func (s *Server) Foreign(ctx *fasthttp.RequestCtx) (*Conn, error) {
	other, p := &Server{}, s.parser.Load()
	other.parser.Store(p)
	other.options.Store(&foreignPlain)
	if ctx.IsTLS() {
		other.options.Store(&foreignSecure)
	}
	c := newConn(other, ctx.Conn(), peerAddr(ctx.Conn()))
	c.foreign = true
	c.acquire(p)
	x := c.exchange
	x.request.reset()
	head := headOf(&ctx.Request.Header)
	_, _, rule := x.request.read(p, head)
	if rule != fine {
		x.request.reset()
		return c, rule.err()
	}
	x.request.keep(head, nil)
	x.request.Upgrade = false // it cannot leave HTTP: nothing here would join it to a tunnel
	x.reader.head = x.request.Head
	if content := ctx.Request.Body(); len(content) > 0 {
		x.reader.body = body{place: inLength, left: int64(len(content))}
		x.reader.src = bytes.NewReader(content)
	}
	return c, nil
}

// headOf is the head that was read into h.
func headOf(h *fasthttp.RequestHeader) []byte {
	version, lines := " HTTP/1.1\r\n", h.RawHeaders()
	if !h.IsHTTP11() {
		version = " HTTP/1.0\r\n"
	}
	if len(lines) == 0 {
		lines = []byte("\r\n")
	}
	return slices.Concat(h.Method(), []byte(" "), h.RequestURI(), []byte(version), lines)
}
