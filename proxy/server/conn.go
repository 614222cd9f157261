package server

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// phase is what a connection does. The goroutine that owns the connection sets it, and Drain reads it too.
type phase = int32

const (
	phaseBusy      phase = iota // none of those below
	phaseIdle                   // waits for a request, of which no byte has come
	phaseHead                   // waits for the rest of a head, within ReadHeaderTimeout
	phaseBody                   // waits for a body, within ReadTimeout
	phaseTunnel                 // has left HTTP
	phaseLingering              // waits until the client has read the last answer
)

// Conn is one client connection. Its methods are for the handler of a request on it, but for Abort, which any
// goroutine may call.
type Conn struct {
	State any // the handler's; the server does not touch it

	net.Conn // what requests are read from: the socket, or TLS over it. It is not for the handler

	server   *Server
	exchange *exchange // the request under way; nil = it waits for one
	event    eventConn // the socket in an event loop; nil = a goroutine waits for requests
	peer     netip.Addr
	unnamed  bool
	phase    atomic.Int32
	requests int

	writeBudget    time.Duration // left for all writes of this answer; 0 = each has its own time, negative = used up
	eachRead       bool          // ReadTimeout is for each wait for a part of this body, not for all of it
	discardPending bool          // the rest of the body is read and dropped after the answer
	closeAfter     bool          // the connection ends with this answer
	lingerOnClose  bool          // unread input may come: closing at once would reset the answer away
	suspension     *suspension   // of the request under way; nil = none
	resumed        bool          // the request under way has waited
	foreign        bool          // another server reads and writes the connection
	upgraded       net.Conn      // to be joined with the client after the answer; nil = none
	raw            syscall.RawConn
	firstByte      [1]byte // buffer of a connection that waits in a goroutine
}

func newConn(s *Server, nc net.Conn, peer netip.Addr) *Conn {
	return &Conn{Conn: nc, server: s, peer: peer}
}

// Peer is the client's address, or the one that a PROXY header names; the zero Addr for a unix socket.
func (c *Conn) Peer() netip.Addr { return c.peer }

// Unnamed reports a connection whose PROXY header names no client, so that Peer is the proxy. Nothing that comes on it
// may name a client either: it is not known that the proxy wrote it.
func (c *Conn) Unnamed() bool { return c.unnamed }

// Secure reports a connection over TLS.
func (c *Conn) Secure() bool { return c.server.options.Load().TLS != nil }

// Requests is how many requests have come on the connection, this one included.
func (c *Conn) Requests() int { return c.requests }

// ReadBody reads content of the request's body into p, without framing. A client that waits for 100 Continue is sent
// it first (RFC 9110, section 10.1.1). It returns io.EOF at the body's end, also together with the last bytes; a
// ProtocolError for broken framing; io.ErrUnexpectedEOF for a body that was cut short; else the connection's error,
// which is a time-out after ReadTimeout. It may wait, and needs no StepAside.
func (c *Conn) ReadBody(p []byte) (int, error) {
	r := c.exchange.reader
	failed := r.broken != nil
	n, err := r.readBody(p)
	if e, ok := err.(ProtocolError); ok && !failed {
		c.server.protocolErrors[e.Rule].Add(1)
	}
	return n, err
}

// BodyCame reports that the whole body has come along with its head, so that ReadBody does not wait. Of a body in
// chunks it is not known before its end was read.
func (c *Conn) BodyCame() bool {
	r := c.exchange.reader
	return r.body.place == atEnd || r.body.place == inLength && int64(r.end-r.at) >= r.body.left
}

// DiscardBody drops what of the body has come, without waiting for more, and reports whether that was all of it. The
// server does so after each request; the connection ends where a part of the body is still to come.
func (c *Conn) DiscardBody() (whole bool) { return c.exchange.reader.drainBody() }

// maxSkippedBody is how much of an unread body may still be on its way without costing the connection, in bytes: many
// clients send head and body in two packets.
const maxSkippedBody = 16 << 10

// SkipBody gives up the request's body, of which a short rest may be dropped after the answer, and reports whether
// the connection can carry another request. A client that waits for 100 Continue may send its body or not: behind
// that no head can be found.
func (c *Conn) SkipBody() bool {
	r := c.exchange.reader
	if r.drainBody() {
		return true
	}
	h := &r.head
	c.discardPending = h.ContentLength > 0 && h.ContentLength <= maxSkippedBody && !h.Expect100 && !h.Close
	return c.discardPending
}

// CloseAfterResponse makes this answer the last one of the connection. It says Connection: close.
func (c *Conn) CloseAfterResponse() { c.closeAfter = true }

// Closes reports that the connection ends with this answer.
func (c *Conn) Closes() bool { return c.closeAfter }

// LimitEachRead gives each wait for a part of this request's body one ReadTimeout, instead of one for all of them. It
// is for a body whose length in time harms no other request.
func (c *Conn) LimitEachRead() { c.eachRead = true }

// LimitWrites gives all writes of this answer one WriteTimeout together, instead of one for each. It is for a
// streamed answer that holds a resource: a client that reads slowly would hold it without end. Only the time in which
// the server waits for the client counts.
func (c *Conn) LimitWrites() { c.writeBudget = c.server.options.Load().WriteTimeout }

// StepAside must come before anything that may block, but for reads and writes of this connection and of those that
// Adopt returned and Bind bound to Owner. It makes another goroutine run the event loop; this one goes on. More calls
// cost nothing.
func (c *Conn) StepAside() {
	if c.event != nil {
		c.event.StepAside()
	}
}

// Loop is the number of the event loop that serves the connection: what is written for each loop is contended by no
// other processor. -1 = the connection has a goroutine of its own.
func (c *Conn) Loop() int {
	if c.event == nil {
		return -1
	}
	return c.event.Loop()
}

// Owner stands for the goroutine that handles requests of this connection. A connection of Adopt is told of it by its
// method Bind(owner any), before it is read or written in that goroutine; nil = no event loop is involved.
func (c *Conn) Owner() interface{ StepAside() } {
	if c.event == nil {
		return nil
	}
	return c.event
}

// Tunnel joins the client and upstream once the answer, a 101, was written (RFC 9110, section 7.8). The server closes
// upstream, also when the answer cannot be written.
func (c *Conn) Tunnel(upstream net.Conn) {
	c.upgraded = upstream
	c.exchange.reader.tunnel()
}

// Gone reports that the client has closed the connection, or its side of it. It does not block. Where the system
// cannot tell it is false.
func (c *Conn) Gone() bool {
	if c.raw == nil {
		if c.raw = rawConn(c.Conn); c.raw == nil {
			return false
		}
	}
	gone := false
	err := c.raw.Control(func(fd uintptr) { gone = hungUp(fd) })
	return err != nil || gone
}

// rawConn is the socket below TLS and PROXY protocol; nil = there is none.
func rawConn(c net.Conn) syscall.RawConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if p, ok := c.(proxiedConn); ok {
		c = p.socket
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// Abort closes the connection at once, so that reads and writes on it fail. It is safe for concurrent use.
func (c *Conn) Abort() {
	if c.event != nil && c.event.Reclaim() { // it waited, and no goroutine owns it
		c.close()
		return
	}
	_ = c.Conn.Close()
}

// beginRequest resets what belongs to one request.
func (c *Conn) beginRequest() {
	c.requests++
	c.writeBudget, c.eachRead = 0, false
}

// errNothingCame says that nothing has come yet on a connection that must not be waited for.
var errNothingCame = errors.New("nothing has come")

// socket is the connection below the reader.
type socket struct{ *Conn }

// Read waits for more of a head, within ReadHeaderTimeout, or of a body, within ReadTimeout. A client is told to send
// a body only when its first byte is awaited: one that is rejected never sends it.
func (s socket) Read(p []byte) (int, error) {
	c := s.Conn
	switch {
	case c.phase.Load() == phaseIdle:
		n, err := c.event.TryRead(p)
		if n == 0 && err == nil {
			err = errNothingCame
		}
		return n, err
	case c.phase.Load() == phaseTunnel:
	case c.exchange.reader.bodyRead():
		if c.phase.Load() != phaseHead {
			c.phase.Store(phaseHead)
			c.limitReads(c.server.options.Load().ReadHeaderTimeout)
		}
	case c.phase.Load() != phaseBody:
		c.phase.Store(phaseBody)
		c.limitReads(c.server.options.Load().ReadTimeout)
		if c.exchange.reader.head.Expect100 {
			if _, err := c.write(goOn); err != nil {
				return 0, err
			}
		}
	case c.eachRead:
		c.limitReads(c.server.options.Load().ReadTimeout)
	}
	return c.Conn.Read(p)
}

var goOn = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// interimTimeout is how long a client may keep an interim response from being written: the upstream's connection waits.
const interimTimeout = time.Second

// Interim sends a 1xx response, a head with its empty line, before the answer (RFC 9110, section 15.2). A client that
// does not take it in time loses its connection if a part of it is on its way. If nothing is, the answer goes on
// without it: this process may have stood still meanwhile, and a deadline that is over fails each write. TLS cannot go
// on.
func (c *Conn) Interim(head []byte) {
	if c.exchange.reader.head.HTTP10 {
		return
	}
	_ = c.Conn.SetWriteDeadline(deadline(interimTimeout))
	if n, err := c.Conn.Write(head); err != nil && (n > 0 || c.Secure()) {
		_ = c.Conn.Close()
	}
	_ = c.Conn.SetWriteDeadline(time.Time{})
}

// EndRead ends a read of the request's body that waits, and those after it, with os.ErrDeadlineExceeded. Any goroutine
// may call it while the body is read. The connection must be closed behind the answer.
func (c *Conn) EndRead() { _ = c.Conn.SetReadDeadline(time.Unix(1, 0)) }

// limitReads bounds the reads that follow; 0 = no limit.
func (c *Conn) limitReads(wait time.Duration) { _ = c.Conn.SetReadDeadline(deadline(wait)) }

// deadline is the instant after d; none when d is 0.
func deadline(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// write allows each write its time, so that a long download is cut off only when the client has stopped to read.
func (c *Conn) write(p []byte) (int, error) {
	if c.writeBudget != 0 {
		return c.writeWithinBudget(p)
	}
	_ = c.Conn.SetWriteDeadline(deadline(c.server.options.Load().WriteTimeout))
	return c.Conn.Write(p)
}

// writeWithinBudget writes within what is left of the answer's time.
func (c *Conn) writeWithinBudget(p []byte) (int, error) {
	if c.writeBudget < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	begun := time.Now()
	_ = c.Conn.SetWriteDeadline(begun.Add(c.writeBudget))
	n, err := c.Conn.Write(p)
	if c.writeBudget -= time.Since(begun); c.writeBudget == 0 {
		c.writeBudget = -1
	}
	return n, err
}

// discardRest reads a short body to its end, and reports whether it came.
func (c *Conn) discardRest() bool {
	if c.eachRead {
		c.eachRead = false
		c.limitReads(c.server.options.Load().ReadTimeout)
	}
	if !c.exchange.reader.dropBody() {
		return false
	}
	c.discardPending = false
	return true
}

// expedite gives an idle connection a last moment to send what may be on its way.
func (c *Conn) expedite() {
	switch {
	case c.event != nil:
		c.event.Expedite(grace)
	case c.phase.Load() == phaseIdle:
		_ = c.Conn.SetReadDeadline(time.Now().Add(grace))
	}
}

// close ends a connection that the caller owns.
func (c *Conn) close() {
	if c.lingerOnClose {
		c.phase.Store(phaseLingering)
		if c.server.closing.Load() {
			linger(c.Conn, lingerTimeout, lingerSize)
		} else {
			linger(c.Conn, lastTimeout, lastSize)
		}
	}
	_ = c.Conn.Close()
	c.server.handler.CloseConn(c)
	c.server.untrack(c)
}

// How long, and for how much, a connection that is to be closed is still read: closing a socket with unread input
// makes the kernel send a reset, and drop what the client has not received of its answers (RFC 9112, section 9.6). A
// client that has sent many requests at once may have complete answers on the way when a later one breaks off.
const (
	lingerTimeout = 500 * time.Millisecond // of a connection that was rejected, or while the server drains
	lingerSize    = 256 << 10
	lastTimeout   = 5 * time.Second // of one whose requests were answered
	lastSize      = 16 << 20
)

// linger ends the server's side of c, and reads what is still on its way, for a time and a number of bytes.
func linger(c net.Conn, within time.Duration, size int) {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(within)) != nil {
		return
	}
	var buf [4 << 10]byte
	for left := size; left > 0; {
		n, err := c.Read(buf[:])
		if err != nil {
			return
		}
		left -= n
	}
}
