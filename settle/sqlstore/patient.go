package sqlstore

import (
	"net"
	"sync"
	"time"
)

// patience is for how long a server may say nothing, or take nothing. The server ends a statement before that.
const patience = 30 * time.Second

// patientConn bounds each read and write. A host that has gone without a word would hold them until TCP gives up, in a
// quarter of an hour.
type patientConn struct {
	net.Conn

	mu          sync.Mutex
	read, write time.Time // the deadlines that the owner has set
}

// SetDeadline implements net.Conn.
func (c *patientConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.write = t, t
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *patientConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = t
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *patientConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = t
	return c.Conn.SetWriteDeadline(t)
}

func (c *patientConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	err := c.Conn.SetReadDeadline(sooner(c.read))
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *patientConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	err := c.Conn.SetWriteDeadline(sooner(c.write))
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// sooner is when a call that begins now must end.
func sooner(set time.Time) time.Time {
	if end := time.Now().Add(patience); set.IsZero() || end.Before(set) {
		return end
	}
	return set
}
