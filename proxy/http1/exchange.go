package http1

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Exchange is one request and its answer. It is pooled: nothing of it is valid after the handler has returned, but
// for Forwarded's body stream, which the server reads and closes.
type Exchange struct {
	Conn    *Conn
	Request Request

	// Local is an answer of the handler's own. It is used when its Status is set, Forwarded otherwise.
	Local Response

	// Forwarded is the upstream's answer, or a kept one. The server takes over its status, fields and body, and frames
	// them anew; Connection, Content-Length, Transfer-Encoding and the other hop-by-hop fields in it are not sent, but
	// for the Connection of a 101. ImmediateHeaderFlush sends the head before the first byte of a body stream has come.
	Forwarded fasthttp.Response

	text []byte // the answer as it is sent, or its head
}

// maxKeptText is the size up to which the buffer for an answer is kept for the next exchange, in bytes.
const maxKeptText = 32 << 10

// Status is the answer's status, in whichever form it is.
func (x *Exchange) Status() int {
	if x.Local.Status != 0 {
		return x.Local.Status
	}
	return x.Forwarded.StatusCode()
}

// serveRequests serves the request whose first bytes have come, and those that came along behind it. It reports
// whether the connection waits for another one; else the connection is closed.
func (s *Server) serveRequests(c *Conn) (more bool) {
	x := s.exchanges.Get().(*Exchange)
	x.Conn = c
	more = x.serve()
	for more && c.reader.pipelined() {
		more = x.serve()
	}
	x.Conn = nil
	s.exchanges.Put(x)
	if c.upgraded != nil {
		runTunnel(c)
	}
	if !more {
		c.close()
	}
	return more
}

// serve reads one request and writes its answer, or suspends it. It reports whether another may follow on the
// connection.
func (x *Exchange) serve() (more bool) {
	defer x.reset()
	c := x.Conn
	c.phase.set(phaseReceiving)
	if err := c.reader.readHead(&x.Request); err != nil {
		x.answerError(err)
		return false
	}
	c.beginRequest()
	c.server.handler.Handle(x)
	if c.resumed = false; c.suspension != nil {
		x.suspend()
		return true
	}
	return x.writeAnswer()
}

// answerError answers what is no valid request. The end of the connection, or a time-out, needs no answer.
func (x *Exchange) answerError(err error) {
	e, ok := err.(ProtocolError)
	if !ok {
		return
	}
	c := x.Conn
	c.server.protocolErrors[e.Rule].Add(1)
	c.phase.set(phaseHandling)
	c.writeBudget = 0
	c.server.handler.ProtocolError(x, e)
	if x.Local.Status == 0 {
		x.Local.Begin(e.Status, nil, nil)
	}
	c.lingerOnClose = true
	_ = x.write(byLength, true)
}

// writeAnswer writes the answer, and reports whether another request may follow.
func (x *Exchange) writeAnswer() (more bool) {
	c := x.Conn
	frame := x.framing()
	last := x.isLast(frame)
	if err := x.write(frame, last); err != nil {
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
func (x *Exchange) isLast(frame framing) bool {
	c := x.Conn
	if c.upgraded != nil {
		return false
	}
	last := x.Request.Close || c.closeAfter || x.Local.Close || frame == untilClose || c.server.announced.Load()
	whole := c.reader.bodyRead() || c.reader.drainBody()
	if !whole && !c.discardPending {
		last = true
	}
	c.lingerOnClose = last && (!x.Request.Close || !whole || c.reader.pipelined())
	return last
}

// write writes the answer in its form.
func (x *Exchange) write(frame framing, last bool) error {
	connection := ""
	switch {
	case last:
		connection = "close"
	case x.Request.HTTP10:
		connection = "keep-alive" // of its own accord HTTP/1.0 closes
	}
	if x.Local.Status == 0 {
		return x.writeForwarded(frame, connection)
	}
	x.text = x.Local.AppendTo(x.text[:0], connection, x.toHead())
	_, err := x.Conn.write(x.text)
	return err
}

// toHead reports a request for the head of an answer alone.
func (x *Exchange) toHead() bool { return string(x.Request.Method()) == "HEAD" }

// reset empties x for the next request. It closes a body stream that was not written.
func (x *Exchange) reset() {
	x.Request.reset()
	x.Local.Reset()
	x.Forwarded.Reset()
	if cap(x.text) > maxKeptText {
		x.text = nil
	}
}

// ReadRequest reads raw, a whole request as it would arrive from peer, without a socket. Its error is a ProtocolError
// when raw is not valid HTTP/1.1. The Exchange is not pooled; its body is read with x.Conn.ReadBody.
func ReadRequest(raw string, peer netip.Addr, l Limits) (*Exchange, error) {
	s := &Server{}
	s.SetLimits(l)
	x := &Exchange{Conn: newConn(s, script{strings.NewReader(raw)}, peer)}
	if err := x.Conn.reader.readHead(&x.Request); err != nil {
		return nil, err
	}
	x.Conn.beginRequest()
	return x, nil
}

// script is a connection on which one text arrives, and then nothing.
type script struct{ io.Reader }

func (script) Write(p []byte) (int, error)      { return len(p), nil }
func (script) Close() error                     { return nil }
func (script) LocalAddr() net.Addr              { return nil }
func (script) RemoteAddr() net.Addr             { return nil }
func (script) SetDeadline(time.Time) error      { return nil }
func (script) SetReadDeadline(time.Time) error  { return nil }
func (script) SetWriteDeadline(time.Time) error { return nil }

// Client is a Conn as those see it who have its request wait.
type Client interface {
	// Gone reports that the client has closed its connection. It does not block.
	Gone() bool

	// StepAside says that the answer may take its time.
	StepAside()

	// Suspend has the request wait without a goroutine: it is handled again after resume, which any goroutine may call,
	// once. resume is nil where the request cannot wait.
	Suspend() (resume func())

	// Resumed reports that the request has waited by Suspend.
	Resumed() bool
}

// suspension is a request that waits for something that the handler waits for. It has no goroutine where event loops
// serve the connection, and no buffers: the head is kept as it was received, and is read again afterwards.
type suspension struct {
	conn   *Conn
	parser *parser
	head   []byte
	state  atomic.Int32
	wake   chan struct{} // nil = the event loop serves the connection again
}

// States of a suspension.
const (
	suspending int32 = iota // the handler has not returned yet
	suspended               // the connection belongs to no goroutine
	resumed
)

// Suspend has the request wait: the handler returns without an answer, and is called again with the same request after
// resume, which any goroutine may call, once. resume is nil where a request cannot wait: it has waited before, it has a
// body, or another one came behind it.
func (c *Conn) Suspend() (resume func()) {
	h := &c.reader.head
	if c.resumed || h.Chunked || h.ContentLength > 0 || c.reader.kept != nil {
		return nil
	}
	c.suspension = &suspension{conn: c, parser: c.reader.parser}
	if c.event == nil {
		c.suspension.wake = make(chan struct{})
	}
	return c.suspension.resume
}

// Resumed reports that the request has waited by Suspend.
func (c *Conn) Resumed() bool { return c.resumed }

// suspend keeps the head of x, so that all else of it serves other requests.
func (x *Exchange) suspend() {
	c := x.Conn
	c.suspension.head = slices.Clone(x.Request.head)
	c.reader.head = noHead // what it says of the connection's end counts when it is read again
	c.requests--
}

// resume has the connection served again.
func (s *suspension) resume() {
	if s.state.Swap(resumed) == suspending {
		return // the goroutine of the handler goes on with it
	}
	if s.wake != nil {
		close(s.wake)
		return
	}
	s.conn.event.Requeue()
}

// release gives the connection away until resume. It reports false when that came first: then the caller owns it.
func (s *suspension) release() bool {
	give := func() bool { return s.state.CompareAndSwap(suspending, suspended) }
	if s.wake == nil {
		return s.conn.event.Detach(give)
	}
	return give()
}

// takeSuspended has the reader read the request again that was suspended, and reports whether there is one.
func (c *Conn) takeSuspended() bool {
	s := c.suspension
	if s == nil {
		return false
	}
	c.suspension, c.resumed = nil, true
	k := s.parser.acquire(len(s.head))
	k.to = copy(k.b, s.head)
	c.reader.receive(s.parser, k)
	return true
}
