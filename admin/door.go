package admin

import (
	"net/netip"
	"sync"
	"time"
)

// What wrong tokens come to in a minute.
const (
	wrongOfOne  = 10      // of one client: then no other of its is compared
	wrongOfAll  = 100     // of all: then they are not put on record one by one
	wrongCounts = 1 << 14 // clients of which they are counted
)

// Door keeps those out who guess tokens. It promises that no client has more than so many compared in a minute, and that
// nobody is locked out by what others guess, from however many addresses: a token has 16 bytes or more, and is not found by
// trying from all of them. It is safe for concurrent use, and outlives a reload.
type Door struct {
	mu     sync.Mutex
	minute int64 // of what is counted; wrong and all are of this one alone
	wrong  map[netip.Addr]int
	all    int
}

// NewDoor returns a Door that nobody has come to.
func NewDoor() *Door { return &Door{wrong: map[netip.Addr]int{}} }

// shut tells how long client must wait before a token of its is looked at; 0 = it is looked at now.
func (d *Door) shut(client netip.Addr, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	if d.wrong[client] < wrongOfOne {
		return 0
	}
	return time.Unix((d.minute+1)*60, 0).Sub(now)
}

// refused notes that client came with a wrong token, and reports whether that is worth a line: a flood is not, one by one.
func (d *Door) refused(client netip.Addr, now time.Time) (telling bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	if _, counted := d.wrong[client]; counted || len(d.wrong) < wrongCounts {
		d.wrong[client]++
	}
	d.all++
	return d.all <= wrongOfAll
}

// turn forgets the minute before.
func (d *Door) turn(now time.Time) {
	if minute := now.Unix() / 60; minute != d.minute {
		d.minute, d.all = minute, 0
		clear(d.wrong)
	}
}

// clientOf is whom a wrong token is counted to: an IPv4 address, or an IPv6 /64; the zero Addr is a unix socket.
func clientOf(hostport string) netip.Addr {
	ap, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return netip.Addr{}
	}
	addr := ap.Addr().Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}
