package admin

import (
	"net/netip"
	"sync"
	"time"
)

// How many wrong tokens are compared in a minute: of one client, and of all who have not come with a right one of late.
const (
	wrongOfOne = 10
	wrongOfAll = 100
	maxKnown   = 1024 // clients that are remembered to have come with a right one
)

// Door keeps those out who guess tokens. It promises that nobody learns more than so many guesses a minute, however
// many addresses they have, and that whoever came with a right token before is not locked out by what others guess.
// It is safe for concurrent use, and outlives a reload.
type Door struct {
	mu     sync.Mutex
	minute int64 // of what is counted; wrong and all are of this one alone
	wrong  map[netip.Addr]int
	all    int
	known  map[netip.Addr]struct{}
}

// NewDoor returns a Door that nobody has come to.
func NewDoor() *Door {
	return &Door{wrong: map[netip.Addr]int{}, known: map[netip.Addr]struct{}{}}
}

// shut tells how long client must wait before a token of its is looked at; 0 = it is looked at now.
func (d *Door) shut(client netip.Addr, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	_, known := d.known[client]
	if d.wrong[client] < wrongOfOne && (known || d.all < wrongOfAll) {
		return 0
	}
	return time.Unix((d.minute+1)*60, 0).Sub(now)
}

// came notes that client came with a token, a right one or not.
func (d *Door) came(client netip.Addr, right bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	if !right {
		d.wrong[client]++
		d.all++
		return
	}
	if len(d.known) >= maxKnown {
		clear(d.known)
	}
	d.known[client] = struct{}{}
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
