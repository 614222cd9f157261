package upstream

import (
	"crypto/tls"
	"net"
	"time"
)

const (
	smallRequest      = 16 << 10 // bytes of head and body that leave in one write
	requestBufferSize = 2 << 10  // bytes; enough for the head of a usual request
	requestBufferKept = 4 << 10  // bytes of a request buffer that an idle connection holds
)

// conn is one connection to a target, with everything that an exchange needs, so that a reused one allocates nothing.
// It belongs to one exchange at a time.
type conn struct {
	net.Conn   // the socket, or TLS over it
	socket     *socket
	in         responseReader
	out        []byte // the request's head, and a small body
	one        [1]byte
	reused     bool
	order      bool          // in use by an order
	held       bool          // counted by hold
	binder     binder        // the socket, if it wants to know who uses it; nil = it does not
	tls        *tls.Config   // by which the upstream was verified; nil = plain
	returnedAt time.Duration // of the Pool's clock, when it was put back
}

// binder is a socket that wants to know for whom it is used: an event loop parks the goroutine that serves its owner.
type binder interface {
	// Bind is called before each use. owner is that of the Request; nil = none.
	Bind(owner any)
}

func newConn(s *socket, c net.Conn) *conn {
	b, _ := s.Conn.(binder)
	return &conn{Conn: c, socket: s, binder: b, in: responseReader{src: c}}
}

// bind tells the socket for whom it is used.
func (c *conn) bind(owner any) {
	if c.binder != nil {
		c.binder.Bind(owner)
	}
}

// fresh reports whether a connection that has been idle may carry a request: it is open, and the upstream has sent
// nothing that no request asked for.
func (c *conn) fresh() bool {
	s := c.socket
	if !s.silent() {
		return false
	}
	t, encrypted := c.Conn.(*tls.Conn)
	if !encrypted {
		return true
	}
	if !s.records.whole() {
		return false
	}
	s.dry = true
	n, err := t.Read(c.one[:])
	s.dry = false
	return n == 0 && isTimeout(err)
}

// reset readies the connection for its next exchange.
func (c *conn) reset() {
	c.bind(nil) // who closes it while it is idle is another goroutine
	c.in.reset()
	c.reused = true
	c.socket.written = 0
	if cap(c.out) > requestBufferKept {
		c.out = nil
	}
}

// assemble puts the request's head into c.out, and its body too if both are small. It returns what remains of the body.
func (c *conn) assemble(req *Request, authority []byte) []byte {
	if c.out == nil {
		c.out = make([]byte, 0, requestBufferSize)
	}
	b, body := req.AppendHead(c.out[:0], authority), req.body()
	n := min(len(body), max(0, smallRequest-len(b)))
	c.out = append(b, body[:n]...)
	return body[n:]
}
