package upstream

import "time"

// A deadline costs as much as a small system call, and nearly every exchange has the same time. So it is set a little too
// far away, and left alone by the exchanges that follow for as long as it is neither early for them nor much too late.

// slack is the part of an exchange's time, one in so many, by which it may end late.
const slack = 16

// answerWithin bounds the writes and reads that follow: they end d after start, or a slack later.
func (c *conn) answerWithin(start time.Time, d time.Duration) error {
	end := start.Add(d)
	if late := c.until.Sub(end); late >= 0 && late <= d/slack {
		return nil
	}
	if err := c.SetDeadline(end.Add(d / slack)); err != nil {
		return err
	}
	c.until = end.Add(d / slack)
	return nil
}

// SetDeadline implements net.Conn, as the two below do.
func (c *conn) SetDeadline(t time.Time) error {
	c.until = time.Time{}
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline sets one that is not answerWithin's.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.until = time.Time{}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline sets one that is not answerWithin's.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.until = time.Time{}
	return c.Conn.SetWriteDeadline(t)
}
