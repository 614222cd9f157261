package proxy

import (
	"crypto/tls"
	"time"
)

// greet shakes hands, where there is TLS, and serves the connection. A handshake that is interrupted can never be gone
// on with: it must not be left to the first Read, which waits for parkAfter and no longer. Whoever is too far away to be
// done by then would never come in.
func (s *Server) greet(c *Conn) {
	if t, encrypted := c.Conn.(*tls.Conn); encrypted {
		_ = t.SetDeadline(deadline(s.ReadHeaderTimeout))
		if err := t.Handshake(); err != nil {
			_ = c.Close() // there is nobody to answer
			return
		}
		_ = t.SetDeadline(time.Time{})
	}
	s.serve(c)
}
