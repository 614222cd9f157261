package upstream

import (
	"bytes"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// tunnel gives the connection to whoever carries the new protocol on. It never comes back to the pool.
func (e *exchange) tunnel(out *proxy.Outgoing, resp *fasthttp.Response, t *target) (proxy.Outcome, fate) {
	protocol := e.head.upgrade()
	if len(protocol) == 0 || e.conn.SetDeadline(time.Time{}) != nil {
		return proxy.Broken, shut
	}
	c := e.conn
	c.kept = e.head.appendKept(c.kept[:0], false)
	name := string(protocol) // the head lies in a buffer that is read on into
	if err := t.headers.fill(&resp.Header, c.kept); err != nil {
		return proxy.Broken, shut
	}
	out.Tunnel = &proxy.Tunnel{Conn: &tunnel{Conn: c.Conn, conn: c, target: t}, Protocol: name}
	return proxy.Answered, lend
}

// upgrade is the protocol that an answer switches to.
func (h *head) upgrade() []byte {
	for rest := h.fields; !bytes.Equal(rest, crlf); {
		var name, value []byte
		if name, value, rest, _ = cutField(rest); is(name, "upgrade") {
			return value
		}
	}
	return nil
}

// tunnel is a connection to the shop beyond HTTP.
type tunnel struct {
	net.Conn
	conn   *conn
	target *target
	closed sync.Once
}

// Read hands on first what came together with the answer's head.
func (u *tunnel) Read(p []byte) (int, error) {
	if in := &u.conn.in; in.buffered() > 0 {
		return copy(p, in.rest(int64(len(p)))), nil
	}
	return u.Conn.Read(p)
}

// CloseWrite says that nothing more will come.
func (u *tunnel) CloseWrite() error {
	half, ok := u.Conn.(interface{ CloseWrite() error })
	if !ok {
		half, ok = u.conn.socket.Conn.(interface{ CloseWrite() error })
	}
	if !ok {
		return u.Close()
	}
	return half.CloseWrite()
}

// Close ends the exchange.
func (u *tunnel) Close() error {
	u.closed.Do(func() { u.target.returned(u.conn, shut) })
	return nil
}
