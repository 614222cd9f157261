package server

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"sluice/internal/octets"
)

// There are two engines. The reference engine is serveConn: one goroutine for each connection, on any listener and
// any system. Plain TCP connections may wait in event loops instead, where the build has them: then serveReady runs
// in the goroutine of a loop, and no goroutine belongs to an idle connection. Both serve requests with serveRequests.

// eventLoops are the event loops of a Server.
type eventLoops interface {
	listen(*net.TCPListener) (net.Listener, error)
	adopt(*net.TCPConn) (net.Conn, error)
	attach(net.Conn, *Conn) eventConn // nil when the connection is not of the loops
	close()
}

// eventConn is a connection that an event loop waits for. It belongs to one goroutine, or, while it waits, to the
// loop.
type eventConn interface {
	// Loop is the number of the loop.
	Loop() int
	// Wait gives the connection to the loop, until a byte comes or timeout has passed; 0 = no limit. It reports false
	// when something has come already: then the caller still owns the connection.
	Wait(timeout time.Duration) (waiting bool, err error)
	// Reclaim ends the wait, and reports that there was one: then the caller owns the connection.
	Reclaim() bool
	// Expedite ends the wait after d, where it would last longer.
	Expedite(d time.Duration)
	// TryRead reads what has come without waiting: 0 bytes and no error when there is nothing, io.EOF at the end.
	TryRead(p []byte) (int, error)
	// StepAside makes another goroutine run the loop, where the owner of the connection does.
	StepAside()
	// Detach gives the connection away until Requeue, if give, which lets others call that, reports true.
	Detach(give func() bool) bool
	// Requeue has the loop serve a detached connection as if something had come.
	Requeue()
}

// serveConn is the reference engine.
func (s *Server) serveConn(c *Conn) {
	if !c.shakeHands() {
		c.close()
		return
	}
	for c.awaitRequest() {
		if !s.serveRequests(c) {
			return
		}
	}
	c.close()
}

// shakeHands brings TLS up, within the time for a head and before anything is read. crypto/tls fails for good when a
// handshake is interrupted, so it must not run within the wait for a first request.
func (c *Conn) shakeHands() bool {
	t, ok := c.Conn.(*tls.Conn)
	if !ok {
		return true
	}
	if t.SetDeadline(deadline(c.server.options.Load().ReadHeaderTimeout)) != nil {
		return false
	}
	if err := t.Handshake(); err != nil {
		c.answerPlain(err)
		return false
	}
	return t.SetDeadline(time.Time{}) == nil
}

// answerPlain answers a client that speaks HTTP where TLS is awaited: its first byte is a letter, as no record of TLS
// has it.
func (c *Conn) answerPlain(err error) {
	var record tls.RecordHeaderError
	if !errors.As(err, &record) || record.Conn == nil {
		return
	}
	if letter := octets.Lower(record.RecordHeader[0]); letter < 'a' || letter > 'z' {
		return
	}
	c.acquire(c.server.parser.Load())
	x := c.exchange
	x.reject(c, plainOnTLS.err())
	if x.text = AppendResponse(x.text[:0], &x.ctx.Response, &x.ready, "close"); writeRejection(record.Conn, x.text) == nil {
		c.phase.Store(phaseLingering)
		linger(record.Conn, lingerTimeout, lingerSize)
	}
	x.reset()
	c.release()
}

// awaitRequest waits for the first byte of a request, with no buffer and no exchange, and reports whether it came.
func (c *Conn) awaitRequest() bool {
	s := c.server
	if c.suspension != nil {
		if c.suspension.release() {
			<-c.suspension.wake
		}
		c.takeSuspended()
		return true
	}
	c.phase.Store(phaseIdle)
	if c.requests == 0 {
		c.limitReads(s.options.Load().ReadHeaderTimeout)
	} else {
		c.limitReads(s.options.Load().IdleTimeout)
	}
	if s.closing.Load() { // Drain may have set its deadline a moment before
		c.expedite()
	}
	if n, _ := c.Conn.Read(c.firstByte[:]); n == 0 {
		return false
	}
	c.acquire(s.parser.Load(), c.firstByte[:]...)
	return true
}

// serveReady serves what has come on a connection of an event loop, in the goroutine that runs the loop, and lets the
// connection wait again.
func (s *Server) serveReady(c *Conn) {
	for s.receive(c) && s.serveRequests(c) && !s.waitInLoop(c) {
	}
}

// receive reads the first bytes of a request. It reports false when there are none: the connection waits again, or is
// closed.
func (s *Server) receive(c *Conn) bool {
	if c.suspension != nil {
		c.takeSuspended()
		return true
	}
	for {
		c.acquire(s.parser.Load())
		err := c.exchange.reader.more()
		if err == nil {
			return true
		}
		c.release()
		if err != errNothingCame {
			c.close()
			return false
		}
		if s.waitInLoop(c) {
			return false
		}
	}
}

// waitInLoop lets the connection wait in its loop. It reports false when something has come already; when it reports
// true, the connection no longer belongs to the caller.
func (s *Server) waitInLoop(c *Conn) bool {
	if c.suspension != nil {
		return c.suspension.release()
	}
	timeout := s.options.Load().IdleTimeout
	if c.requests == 0 {
		timeout = s.options.Load().ReadHeaderTimeout
	}
	c.phase.Store(phaseIdle)
	waiting, err := c.event.Wait(timeout)
	if err != nil {
		c.close()
		return true
	}
	if waiting && s.closing.Load() { // Drain may have expedited it a moment before it waited
		c.event.Expedite(grace)
	}
	return waiting
}

// throughLoops is a listener whose connections wait in event loops, in the place of ln; ln itself where that cannot
// be.
func (s *Server) throughLoops(ln net.Listener) net.Listener {
	tcp, ok := ln.(*net.TCPListener)
	if !ok || s.options.Load().TLS != nil || s.options.Load().ProxyProtocol != nil {
		return ln
	}
	if loops := s.openLoops(); loops != nil {
		if l, err := loops.listen(tcp); err == nil {
			return l
		}
	}
	return ln
}

// Adopt puts an outgoing plain TCP connection on the event loops, so that a Read that blocks waits there. It returns c
// unchanged where there are no event loops, where c is no *net.TCPConn, or when the server has drained; otherwise it
// takes over c, and closes it when that fails. It may be called before Serve. Drain closes the loops, and then a Read
// or Write that would block fails.
func (s *Server) Adopt(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	if loops := s.openLoops(); loops != nil {
		if adopted, err := loops.adopt(tcp); err == nil {
			return adopted
		}
	}
	return c
}

// openLoops opens the event loops, once; nil = there are none in this build, or none any more.
func (s *Server) openLoops() eventLoops {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loops == nil && !s.stopped {
		s.loops = newEventLoops(s)
	}
	return s.loops
}

// closeLoops closes the event loops when no connection is left.
func (s *Server) closeLoops() {
	s.mu.Lock()
	loops := s.loops
	s.loops = nil
	s.mu.Unlock()
	if loops != nil {
		loops.close()
	}
}
