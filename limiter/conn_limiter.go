package limiter

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
)

// ConnLimiter counts open connections, in all and of each client: an IPv4 address, mapped ones included, or an IPv6
// /64.
//
// It promises that neither count exceeds its max. Its memory is one map entry for each client that has a connection
// open: bounded by max_open, or, when that is 0, by the file descriptors that the process may open.
//
// It is safe for concurrent use.
type ConnLimiter struct {
	maxOpen      atomic.Int64
	maxPerClient atomic.Int64
	_            cacheLine
	open         atomic.Int64
	_            cacheLine
	seed         maphash.Seed
	shards       [64]shard
}

// shard holds the clients that hash to it. A connection is dear enough for a lock; requests never come here.
type shard struct {
	mu   sync.Mutex
	open map[client]int64 // connections; no entry = none
	_    cacheLine
}

// client is who is limited: an IPv4 address, or the first half of an IPv6 one.
type client struct {
	net uint64
	six bool
}

// NewConnLimiter returns one for maxOpen connections in all and maxPerClient of one client (0 = no cap, each).
func NewConnLimiter(maxOpen, maxPerClient int) *ConnLimiter {
	c := &ConnLimiter{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].open = make(map[client]int64)
	}
	c.SetMax(maxOpen, maxPerClient)
	return c
}

// SetMax changes both maxima from now on. Connections above a lower max stay until they close.
func (c *ConnLimiter) SetMax(maxOpen, maxPerClient int) {
	c.maxOpen.Store(int64(max(maxOpen, 0)))
	c.maxPerClient.Store(int64(max(maxPerClient, 0)))
}

// Open counts one more connection from addr. It returns Admitted, TotalFull or ClientFull, and has counted nothing
// unless Admitted. Each Admitted must be ended by one Close. An addr that is not valid, as of a Unix socket, belongs
// to no client and counts in all alone.
func (c *ConnLimiter) Open(addr netip.Addr) Verdict {
	if c.full() {
		return TotalFull
	}
	if !addr.IsValid() {
		return c.openOne()
	}
	return c.openFrom(clientOf(addr))
}

func (c *ConnLimiter) openFrom(who client) Verdict {
	s := c.shard(who)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.open[who]
	if most := c.maxPerClient.Load(); most != 0 && n >= most {
		return ClientFull
	}
	verdict := c.openOne()
	if verdict == Admitted {
		s.open[who] = n + 1
	}
	return verdict
}

// Close ends one connection from addr that was Admitted.
func (c *ConnLimiter) Close(addr netip.Addr) {
	if addr.IsValid() {
		c.closeOne(clientOf(addr))
	}
	if c.open.Add(-1) < 0 {
		panic("BUG: Close without Open")
	}
}

// Count is the number of open connections.
func (c *ConnLimiter) Count() int { return int(c.open.Load()) }

func (c *ConnLimiter) full() bool {
	most := c.maxOpen.Load()
	return most != 0 && c.open.Load() >= most
}

// openOne counts a connection in all. Load first: a rejection writes nothing.
func (c *ConnLimiter) openOne() Verdict {
	for {
		most, n := c.maxOpen.Load(), c.open.Load()
		if most != 0 && n >= most {
			return TotalFull
		}
		if c.open.CompareAndSwap(n, n+1) {
			return Admitted
		}
	}
}

func (c *ConnLimiter) closeOne(who client) {
	s := c.shard(who)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.open[who]; n {
	case 0:
		panic("BUG: Close without Open")
	case 1:
		delete(s.open, who)
	default:
		s.open[who] = n - 1
	}
}

// shard chooses by a seeded hash, so that no client can crowd one shard on purpose.
func (c *ConnLimiter) shard(who client) *shard {
	return &c.shards[maphash.Comparable(c.seed, who)%uint64(len(c.shards))]
}

func clientOf(addr netip.Addr) client {
	addr = addr.Unmap()
	if addr.Is4() {
		four := addr.As4()
		return client{net: uint64(binary.BigEndian.Uint32(four[:]))}
	}
	sixteen := addr.As16()
	return client{net: binary.BigEndian.Uint64(sixteen[:8]), six: true}
}
