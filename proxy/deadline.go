package proxy

import "time"

// A deadline costs as much as a small read, and a busy connection would get two of them with each request. So those that
// every request needs are set a little too far away, and are left alone for as long as they are far enough.

// slack is the part of a time, one in so many, by which its deadline may be late.
const slack = 4

// deadlines are those of one connection that still stand, as times since opened; 0 = another one was set since,
// or none. They belong to the goroutine that serves the connection.
type deadlines struct {
	opened      time.Time // asked first
	read, write time.Duration
}

func (d *deadlines) now() time.Duration {
	if d.opened.IsZero() {
		d.opened = time.Now()
	}
	return time.Since(d.opened)
}

// restWithin bounds the wait for a next request: it ends after d at the earliest and d and a quarter at the latest.
func (c *Conn) restWithin(d time.Duration) {
	now := c.until.now()
	if left := c.until.read - now; left >= d && left <= d+d/slack {
		return
	}
	c.until.read = now + d + d/slack
	_ = c.Conn.SetReadDeadline(c.until.opened.Add(c.until.read))
}

// readWithin bounds the reads that follow, exactly; 0 = no limit.
func (c *Conn) readWithin(d time.Duration) {
	c.until.read = 0
	_ = c.Conn.SetReadDeadline(deadline(d))
}

// writeWithin bounds one write, which is interrupted after d at the earliest and d and a quarter at the latest.
func (c *Conn) writeWithin(d time.Duration) {
	now := c.until.now()
	if c.until.write-now >= d {
		return
	}
	c.until.write = now + d + d/slack
	_ = c.Conn.SetWriteDeadline(c.until.opened.Add(c.until.write))
}

// unlimited takes the deadlines away; who reads or writes then sets his own, and none of before passes for standing.
func (c *Conn) unlimited() {
	c.until.read, c.until.write = 0, 0
	_ = c.Conn.SetDeadline(time.Time{})
}
