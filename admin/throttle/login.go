// Package throttle slows clients that send wrong tokens, and never one that sends a right token. Its memory is bounded.
package throttle

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What wrong tokens come to in a minute.
const (
	PerClient   = 10      // of one client: then its wrong ones are answered late, and with 429
	OnRecord    = 100     // of all: then they are not put on record one by one
	wrongCounts = 1 << 14 // clients of which they are counted
)

// A client that has sent too many wrong tokens waits for the answer to the next one. Few wait at a time: an answer that
// waits holds a connection, and those are bounded.
const (
	Pause      = 250 * time.Millisecond
	mostPaused = 8
)

// Login counts wrong tokens, and slows the clients that send many. A right token is never rejected or slowed,
// whatever was sent before from the same address or from others: a token has 16 bytes or more, and is not found by
// trying. It is safe for concurrent use, and outlives a reload.
type Login struct {
	mu     sync.Mutex
	minute int64 // of what is counted; wrong and all are of this one alone
	wrong  map[netip.Addr]int
	all    int
	paused int // requests that wait

	total atomic.Uint64
}

// NewLogin returns a Login that has counted nothing.
func NewLogin() *Login { return &Login{wrong: map[netip.Addr]int{}} }

// Rejected counts a wrong token of client. It returns how long the client should wait before it sends another one, 0
// for the first ones in a minute, and whether that is worth a line: a flood is not, one by one. It takes Pause
// where there is a wait.
func (d *Login) Rejected(client netip.Addr, now time.Time) (wait time.Duration, telling bool) {
	d.total.Add(1)
	d.mu.Lock()
	d.forgetMinute(now)
	tooMany := d.wrong[client] >= PerClient
	if _, counted := d.wrong[client]; counted || len(d.wrong) < wrongCounts {
		d.wrong[client]++
	}
	d.all++
	telling = d.all <= OnRecord
	pause := tooMany && d.paused < mostPaused
	if pause {
		d.paused++
	}
	d.mu.Unlock()
	if pause {
		time.Sleep(Pause)
		d.mu.Lock()
		d.paused--
		d.mu.Unlock()
	}
	if tooMany {
		wait = time.Unix((now.Unix()/60+1)*60, 0).Sub(now)
	}
	return wait, telling
}

var wrongTokens = prometheus.NewDesc("sluice_admin_wrong_tokens_total", "Requests to admin.listen with a wrong token.",
	nil, nil)

// Describe implements prometheus.Collector.
func (d *Login) Describe(out chan<- *prometheus.Desc) { out <- wrongTokens }

// Total is how many wrong tokens have come.
func (d *Login) Total() uint64 { return d.total.Load() }

// Collect implements prometheus.Collector.
func (d *Login) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(wrongTokens, prometheus.CounterValue, float64(d.total.Load()))
}

// forgetMinute forgets the minute before.
func (d *Login) forgetMinute(now time.Time) {
	if minute := now.Unix() / 60; minute != d.minute {
		d.minute, d.all = minute, 0
		clear(d.wrong)
	}
}

// ClientOf is whom a wrong token is counted to: an IPv4 address, or an IPv6 /64; the zero Addr is a unix socket.
func ClientOf(hostport string) netip.Addr {
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
