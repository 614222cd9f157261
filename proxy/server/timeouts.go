package server

import (
	"net"
	"time"
)

// Setting a deadline costs as much as a small read. Deadlines that every request needs are therefore set a little too
// far away, and left alone for as long as they are far enough.

// deadlineSlack is the part of a time, one in so many, by which its deadline may be late.
const deadlineSlack = 4

// deadlines are those of one connection that still stand, as times since opened; 0 = another one was set since, or
// none. They belong to the goroutine that serves the connection.
type deadlines struct {
	opened      time.Time // set by the first call of now
	read, write time.Duration
}

func (d *deadlines) now() time.Duration {
	if d.opened.IsZero() {
		d.opened = time.Now()
	}
	return time.Since(d.opened)
}

// limitIdle bounds the wait for a next request: it ends after wait at the earliest and 1.25 wait at the latest; 0 =
// no limit.
func (d *deadlines) limitIdle(c net.Conn, wait time.Duration) {
	if wait <= 0 {
		d.limitReads(c, 0)
		return
	}
	now := d.now()
	if left := d.read - now; left >= wait && left <= wait+wait/deadlineSlack {
		return
	}
	d.read = now + wait + wait/deadlineSlack
	_ = c.SetReadDeadline(d.opened.Add(d.read))
}

// limitReads bounds the reads that follow, exactly; 0 = no limit.
func (d *deadlines) limitReads(c net.Conn, wait time.Duration) {
	d.read = 0
	_ = c.SetReadDeadline(deadline(wait))
}

// limitWrite bounds one write, which is interrupted after wait at the earliest and 1.25 wait at the latest.
func (d *deadlines) limitWrite(c net.Conn, wait time.Duration) {
	now := d.now()
	if d.write-now >= wait {
		return
	}
	d.write = now + wait + wait/deadlineSlack
	_ = c.SetWriteDeadline(d.opened.Add(d.write))
}

// deadline is the instant after d; none when d is 0.
func deadline(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}
