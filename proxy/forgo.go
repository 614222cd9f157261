package proxy

import "io"

// shortBody is how much of a refused request's body may still be on its way without costing the connection: many
// clients send head and body in two packets.
const shortBody = 16 << 10

// forgo gives up the current request's body, and reports whether the connection can carry another request. Who waits
// to be told to send a body may send it or not: behind that no head can be found.
func (c *Conn) forgo() bool {
	if c.reader.DrainBody() {
		return true
	}
	h := c.reader.Head()
	c.forgone = h.ContentLength > 0 && h.ContentLength <= shortBody && !h.Expect100 && !h.Close
	return c.forgone
}

// passOver reads a forgone body to its end, and reports whether it came.
func (c *Conn) passOver() bool {
	room := c.server.rooms.Get().(*[]byte)
	defer c.server.rooms.Put(room)
	for !c.reader.BodyRead() {
		if _, err := c.reader.ReadBody(*room); err != nil && err != io.EOF {
			return false
		}
	}
	c.forgone = false
	return true
}
