package proxy

import (
	"crypto/tls"
	"io"
	"time"
)

// A connection between two requests needs little: one that waits for longer than a moment is taken from the HTTP
// library, which keeps buffers, a request and a deep stack for each, and waits in a goroutine of its own that has
// none of them. Ten thousand shoppers who look at a page cost a few KiB each.

// parkAfter is that moment, more or less. Shorter, and busy connections would be parked between their requests.
const parkAfter = 100 * time.Millisecond

// welcome takes a connection that was let in to its first request. A flood of connections that say nothing costs no
// more than idle ones.
func (s *Server) welcome(c *Conn) {
	if !c.shakeHands() {
		_ = c.Close()
		return
	}
	c.park()
}

// serve hands the connection to the HTTP library for as long as requests come.
func (s *Server) serve(c *Conn) {
	_ = s.http.ServeConn(c) // its faults were answered and counted
	if c.moving {
		c.moving = false
		_ = s.roomy.ServeConn(c)
	}
	if c.parking {
		go c.park()
	}
}

// usualHead is the room that the HTTP library has for a head. The few that are larger are moved to a server with more,
// so that each connection costs what is usual and not what is allowed.
const usualHead = 4 << 10

// move takes the connection from the HTTP library, with the part of a large head that it was about to get.
func (c *Conn) move(head []byte) (int, error) {
	c.moving = true
	c.begunHead = append([]byte(nil), head...)
	return 0, io.EOF
}

// shakeHands brings TLS up, within the time for a head and before anything is read. A handshake within the first read
// would have only that read's time, parkAfter, and crypto/tls gives up for good on one that was interrupted.
func (c *Conn) shakeHands() bool {
	t, secure := c.Conn.(*tls.Conn)
	if !secure {
		return true
	}
	if t.SetDeadline(deadline(c.server.ReadHeaderTimeout)) != nil || t.Handshake() != nil {
		return false
	}
	return t.SetDeadline(time.Time{}) == nil
}

// park waits for the first byte of the next request, for as long as the connection may be idle.
func (c *Conn) park() {
	c.parking = true
	patience := c.server.IdleTimeout
	if !c.served {
		patience = c.server.ReadHeaderTimeout
	}
	c.outside.Store(true)
	c.idle.Store(true)
	c.readWithin(patience)
	if c.server.closing.Load() {
		c.hurry()
	}
	n, _ := c.Conn.Read(c.first[:])
	c.idle.Store(false)
	c.outside.Store(false)
	c.parking = false
	if n == 0 {
		_ = c.Close()
		return
	}
	c.begun = true
	c.server.serve(c)
}

// readOn reads what follows the byte that ended the parking.
func (c *Conn) readOn(p []byte) (int, error) {
	c.begun = false
	p[0] = c.first[0]
	if len(p) == 1 {
		return 1, nil
	}
	c.headTimed = true
	c.readWithin(c.server.ReadHeaderTimeout)
	n, err := c.Conn.Read(p[1:])
	return 1 + n, err
}
