package server

import (
	"bytes"
	"sync/atomic"
)

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
	r := c.exchange.reader
	if h := &r.head; c.resumed || h.Chunked || h.ContentLength > 0 || r.at < r.end || c.foreign {
		return nil
	}
	c.suspension = &suspension{conn: c, parser: r.parser}
	if c.event == nil {
		c.suspension.wake = make(chan struct{})
	}
	return c.suspension.resume
}

// Resumed reports that the request has waited by Suspend.
func (c *Conn) Resumed() bool { return c.resumed }

// suspend keeps the head of x, so that all else of it serves other requests.
func (x *exchange) suspend(c *Conn) {
	c.suspension.head = bytes.Clone(x.request.text)
	x.reader.head = noHead // what it says of the connection's end counts when it is read again
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

// takeSuspended has the request read again that was suspended.
func (c *Conn) takeSuspended() {
	s := c.suspension
	c.suspension, c.resumed = nil, true
	c.acquire(s.parser, s.head...)
}
