//go:build unix

package proxy

import (
	"net"
	"syscall"
)

// wakened returns what takes the bytes that end a parking from c's socket, once there are some; nil where it is no plain socket.
func (c *Conn) wakened() func(uintptr) bool {
	switch c.Conn.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return nil
	}
	if c.raw == nil {
		c.raw = rawOf(c.Conn)
	}
	if c.raw == nil {
		return nil
	}
	return func(fd uintptr) bool {
		room := c.server.rooms.Get().(*[]byte)
		for {
			n, err := syscall.Read(int(fd), *room)
			switch {
			case err == syscall.EINTR:
				continue
			case n > 0:
				c.came, c.room = (*room)[:n], room
				return true
			}
			c.server.rooms.Put(room)
			return err != syscall.EAGAIN // the end, or a fault: nothing came
		}
	}
}
