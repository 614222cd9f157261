package limiter

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// ConnLimiter counts open connections, in all and of each client: an IPv4 address, mapped ones included, or an IPv6
// /64.
//
// It promises that neither count exceeds its max. Its memory is one map entry for each client that has a connection
// open: bounded by max_open, or, when that is 0, by the file descriptors that the process may open.
//
// It is safe for concurrent use. A connection is dear enough for a lock; requests never come here.
type ConnLimiter struct {
	mu           sync.Mutex
	maxOpen      int
	maxPerClient int
	open         int
	clients      map[client]int // connections; no entry = none
}

// client is who is limited: an IPv4 address, or the first half of an IPv6 one.
type client struct {
	net uint64
	six bool
}

// NewConnLimiter returns one for maxOpen connections in all and maxPerClient of one client (0 = no cap, each).
func NewConnLimiter(maxOpen, maxPerClient int) *ConnLimiter {
	return &ConnLimiter{maxOpen: max(maxOpen, 0), maxPerClient: max(maxPerClient, 0), clients: map[client]int{}}
}

// SetMax changes both maxima from now on. Connections above a lower max stay until they close.
func (c *ConnLimiter) SetMax(maxOpen, maxPerClient int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maxOpen, c.maxPerClient = max(maxOpen, 0), max(maxPerClient, 0)
}

// Open counts one more connection from addr. It returns Admitted, TotalFull or ClientFull, and has counted nothing
// unless Admitted. Each Admitted must be ended by one Close. An addr that is not valid, as of a Unix socket, belongs
// to no client and counts in all alone.
func (c *ConnLimiter) Open(addr netip.Addr) Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.maxOpen != 0 && c.open >= c.maxOpen {
		return TotalFull
	}
	if addr.IsValid() {
		who := clientOf(addr)
		if c.maxPerClient != 0 && c.clients[who] >= c.maxPerClient {
			return ClientFull
		}
		c.clients[who]++
	}
	c.open++
	return Admitted
}

// Close ends one connection from addr that was Admitted.
func (c *ConnLimiter) Close(addr netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == 0 {
		panic("BUG: Close without Open")
	}
	if addr.IsValid() {
		who := clientOf(addr)
		switch c.clients[who] {
		case 0:
			panic("BUG: Close without Open")
		case 1:
			delete(c.clients, who)
		default:
			c.clients[who]--
		}
	}
	c.open--
}

// Count is the number of open connections.
func (c *ConnLimiter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// clientOf is the client of a valid address.
func clientOf(addr netip.Addr) client {
	addr = addr.Unmap()
	if addr.Is4() {
		four := addr.As4()
		return client{net: uint64(binary.BigEndian.Uint32(four[:]))}
	}
	sixteen := addr.As16()
	return client{net: binary.BigEndian.Uint64(sixteen[:8]), six: true}
}
