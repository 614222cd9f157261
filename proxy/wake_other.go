//go:build !unix

package proxy

// wakened is nothing: the first byte is read like any other.
func (c *Conn) wakened() func(uintptr) bool { return nil }
