package upstream

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Upgrade sends a request that asks to leave HTTP (RFC 9110, section 7.8), as a WebSocket's does. If the upstream
// answers 101, resp holds that response, and the connection is the caller's, without any deadline: it must be closed.
// It has CloseWrite. Any other response is as Send's, and the connection is nil.
func (p *Pool) Upgrade(req *Request, resp *fasthttp.Response) (net.Conn, Outcome) {
	var tun tunnel
	outcome := p.send(req, resp, &tun)
	if tun.conn == nil {
		return nil, outcome
	}
	return &tun, outcome
}

// tunnel is a connection that has left HTTP. It is never pooled.
type tunnel struct {
	net.Conn // deadlines are the caller's: those of conn are for one goroutine
	conn     *conn
	target   *target
	closed   atomic.Bool
}

// Read returns first what came together with the response.
func (t *tunnel) Read(p []byte) (int, error) {
	if t.conn.in.buffered() > 0 {
		return t.conn.in.buf.Read(p)
	}
	return t.Conn.Read(p)
}

// CloseWrite says that nothing more will be sent.
func (t *tunnel) CloseWrite() error {
	half, ok := t.Conn.(interface{ CloseWrite() error }) // TLS
	if !ok {
		half, ok = t.conn.socket.Conn.(interface{ CloseWrite() error })
	}
	if !ok {
		return t.Close()
	}
	return half.CloseWrite()
}

// Close closes the connection. It may be called at any time, and more than once.
func (t *tunnel) Close() error {
	if !t.closed.Swap(true) {
		t.target.endStream(t.conn, mustClose)
	}
	return nil
}

// openTunnel gives the connection of e, whose response was 101, to e.tunnel.
func (e *exchange) openTunnel(req *Request, resp *fasthttp.Response, t *target) (Outcome, disposition) {
	if !t.hold(e.conn, req) {
		return Capped, mustClose
	}
	if err := e.conn.SetDeadline(time.Time{}); err != nil {
		return Broken, mustClose
	}
	resp.Header.Set(fasthttp.HeaderConnection, "Upgrade")
	e.tunnel.Conn, e.tunnel.conn, e.tunnel.target = e.conn.Conn, e.conn, t
	return Answered, streaming
}
