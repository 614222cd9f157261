package upstream

import (
	"net"
	"time"

	"sluice/proxy"
)

const (
	smallRequest = 16 << 10  // bytes of head and body that leave in one write
	bufferKept   = 64 << 10  // bytes of a request buffer that an idle connection may hold on to
	piece        = 256 << 10 // bytes of a larger body in one write
)

// conn is one connection to a target, with everything that an exchange needs, so that a reused one
// allocates nothing. It belongs to one exchange at a time.
type conn struct {
	net.Conn // the socket, or TLS over it
	socket   *socket
	in       inbox
	trip     trip
	seat     *proxy.Looped // in the loop that waits for it; nil = none does
	flight   flight
	out      []byte // the request's head, and a small body
	kept     []byte // the answer's head as the client may see it
	one      [1]byte
	until    time.Time // the deadline that stands for reads and writes alike; 0 = others were set since
	reused   bool
	order    bool          // in use by one
	idle     time.Duration // of the Pool's clock, when it was put back
}

func newConn(s *socket, c net.Conn) *conn {
	made := &conn{Conn: c, socket: s, in: inbox{src: c}}
	made.trip.open(made)
	return made
}

// fresh reports whether an idle connection may carry a request.
func (c *conn) fresh() bool { return c.socket.fresh(c.Conn, c.one[:]) }

// Close implements net.Conn.
func (c *conn) Close() error {
	if c.seat != nil {
		c.seat.Leave()
	}
	return c.Conn.Close()
}

// settle readies the connection for its next exchange.
func (c *conn) settle() {
	if c.in.patience > 0 {
		c.until = time.Time{} // the inbox has set deadlines of its own
	}
	c.in.settle()
	c.reused = true
	c.socket.written = 0
	if cap(c.out) > bufferKept {
		c.out = nil
	}
	if cap(c.kept) > bufferKept {
		c.kept = nil
	}
}

// patience bounds one exchange in time.
type patience struct {
	answer time.Duration // from the last byte of the request to the answer's head; up to a slack more
	whole  time.Duration // the exchange; of a stream, each single read and write
	most   int           // bytes of an answer's body that is read whole
}

// assemble writes the request's head into c.out, and its body too if it is small; it returns what
// remains of the body.
func (c *conn) assemble(out *proxy.Outgoing, authority []byte) []byte {
	host := out.Host
	if len(host) == 0 {
		host = authority
	}
	b := append(c.out[:0], out.Line...)
	b = append(b, "Host: "...)
	b = append(b, host...)
	b = append(b, crlf...)
	b = append(b, out.Fields...)
	b = append(b, crlf...)
	n := min(len(out.Body), max(0, smallRequest-len(b)))
	c.out = append(b, out.Body[:n]...)
	return out.Body[n:]
}
