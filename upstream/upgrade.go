package upstream

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// Upgrade sends a request that asks to leave HTTP (RFC 9110, 7.8), as a WebSocket's does. If the shop
// answers 101, resp holds that answer, and the connection is the caller's, without any deadline: it must
// be closed. Any other answer is an ordinary one, and the connection is nil.
func (p *Pool) Upgrade(out *proxy.Outgoing, resp *fasthttp.Response) (net.Conn, proxy.Outcome) {
	var tun tunnel
	_, outcome := p.send(out, resp, &tun, nil)
	if tun.conn == nil {
		return nil, outcome
	}
	return &tun, outcome
}

// tunnel is a connection that has left HTTP. It is never pooled.
type tunnel struct {
	*conn
	target *target
	closed atomic.Bool
}

// Read gives first what came together with the answer.
func (t *tunnel) Read(p []byte) (int, error) {
	if waiting := t.in.rest(int64(len(p))); len(waiting) > 0 {
		return copy(p, waiting), nil
	}
	return t.conn.Read(p)
}

// CloseWrite says that nothing more will be sent.
func (t *tunnel) CloseWrite() error {
	half, ok := t.Conn.(interface{ CloseWrite() error }) // TLS
	if !ok {
		half, ok = t.socket.Conn.(interface{ CloseWrite() error })
	}
	if !ok {
		return t.Close()
	}
	return half.CloseWrite()
}

// Close closes the connection. It may be called at any time, and more than once.
func (t *tunnel) Close() error {
	if !t.closed.Swap(true) {
		t.target.returned(t.conn, shut)
	}
	return nil
}

// open gives the connection of e, whose answer was 101, to e.tunnel.
func (e *exchange) open(resp *fasthttp.Response, t *target) (proxy.Outcome, fate) {
	if err := e.conn.SetDeadline(time.Time{}); err != nil {
		return proxy.Broken, shut
	}
	if err := t.headers.fill(&resp.Header, e.conn.kept); err != nil {
		return proxy.Broken, shut
	}
	resp.ResetBody()
	e.tunnel.conn, e.tunnel.target = e.conn, t
	return proxy.Answered, lend
}
