package proxy

import (
	"os"
	"time"
)

// A large answer goes to the client as it comes, and its place inside the shop is given back when it has ended. Who reads
// it slowly would hold the place for as long as he likes, by reading a little before each write times out. So for such an
// answer WriteTimeout is not for each write but for all of them: the time in which the gate waits for the client. That the
// shop is slow is not counted.

// hasten begins an answer that holds a place.
func (c *Conn) hasten() { c.hasty, c.patience = c.server.WriteTimeout > 0, c.server.WriteTimeout }

// writeInHaste writes within what is left of the time.
func (c *Conn) writeInHaste(p []byte) (int, error) {
	if c.patience <= 0 {
		return 0, os.ErrDeadlineExceeded
	}
	begun := time.Now()
	c.until.write = 0
	_ = c.Conn.SetWriteDeadline(begun.Add(c.patience))
	n, err := c.Conn.Write(p)
	c.patience -= time.Since(begun)
	return n, err
}
