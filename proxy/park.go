package proxy

import (
	"crypto/tls"
	"time"
)

// A connection between two requests needs little: one that waits for longer than a moment is taken from its exchange,
// which has buffers, a request and a deep stack. It waits in a goroutine of its own that has none of
// them. Ten thousand shoppers who look at a page
// cost a few KiB each.
//
// Plain TCP is cheaper still, where there are loops: see rest.go. What is here is for TLS, unix sockets and PROXY protocol.

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

// serve serves the connection for as long as requests come, and has it wait then.
func (s *Server) serve(c *Conn) {
	s.exchange(c)
	if c.parking {
		go c.park()
	}
}

// roomSize is how much is taken at most of what ends a parking.
const roomSize = 4 << 10

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

// park has the connection wait for its next request, for as long as it may be idle. That a request came after a pause
// makes another pause likely: then the connection is parked as soon as it has its answer, which spares it a timer and a
// look in vain.
func (c *Conn) park() {
	c.parking = true
	c.parked = c.until.now()
	c.outside.Store(true)
	c.idle.Store(true)
	c.await()
}

// await waits for as long as the connection may be idle, in the goroutine that calls it.
func (c *Conn) await() {
	switch {
	case !c.served:
		c.readWithin(c.server.ReadHeaderTimeout)
	case c.server.IdleTimeout > 0:
		c.restWithin(c.server.IdleTimeout)
	default:
		c.readWithin(0)
	}
	if c.server.closing.Load() {
		c.hurry()
	}
	_ = c.waitOutside()
	c.resume()
}

// resume ends the parking: with what came, or with the connection.
func (c *Conn) resume() {
	c.slow = c.until.now()-c.parked > parkAfter
	c.idle.Store(false)
	c.outside.Store(false)
	c.parking = false
	if len(c.came) == 0 {
		_ = c.Close()
		return
	}
	c.server.crew.do(job{conn: c})
}

// waitOutside waits for bytes, and takes them in one read where the connection is a plain socket: the room for them is
// borrowed only when they are there.
func (c *Conn) waitOutside() error {
	if c.wake == nil {
		n, err := c.Conn.Read(c.first[:])
		c.came = c.first[:n]
		return err
	}
	return c.raw.Read(c.wake)
}

// readCame hands on what ended the parking.
func (c *Conn) readCame(p []byte) int {
	n := copy(p, c.came)
	if c.came = c.came[n:]; len(c.came) == 0 && c.room != nil {
		c.server.rooms.Put(c.room)
		c.room = nil
	}
	return n
}
