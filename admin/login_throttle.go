package admin

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What wrong tokens come to in a minute.
const (
	wrongPerClient  = 10      // of one client: then its wrong ones are answered late, and with 429
	wrongOnRecord   = 100     // of all: then they are not put on record one by one
	maxWrongClients = 1 << 14 // clients of which they are counted
)

// A client that has sent too many wrong tokens waits for the answer to the next one. Few wait at a time: an answer that
// waits holds a connection, and those are bounded.
const (
	wrongPause     = 250 * time.Millisecond
	maxWrongPaused = 8
)

// LoginThrottle counts wrong tokens, and slows the clients that send many. A right token is never rejected or slowed,
// whatever was sent before from the same address or from others: a token has 16 bytes or more, and is not found by
// trying. Its memory is bounded. It is safe for concurrent use, and outlives a reload.
type LoginThrottle struct {
	mu     sync.Mutex
	minute int64 // of what is counted; wrong and all are of this one alone
	wrong  map[netip.Addr]int
	all    int
	paused int // requests that wait

	total atomic.Uint64
}

// NewLoginThrottle returns one that has counted nothing.
func NewLoginThrottle() *LoginThrottle { return &LoginThrottle{wrong: map[netip.Addr]int{}} }

// Rejected counts a wrong token of client. It returns how long the client should wait before it sends another one, 0
// for the first ones in a minute, and whether that is worth a line: a flood is not, one by one. It takes
// wrongPause where there is a wait.
func (l *LoginThrottle) Rejected(client netip.Addr, now time.Time) (wait time.Duration, telling bool) {
	l.total.Add(1)
	l.mu.Lock()
	l.forgetMinute(now)
	tooMany := l.wrong[client] >= wrongPerClient
	if _, counted := l.wrong[client]; counted || len(l.wrong) < maxWrongClients {
		l.wrong[client]++
	}
	l.all++
	telling = l.all <= wrongOnRecord
	pause := tooMany && l.paused < maxWrongPaused
	if pause {
		l.paused++
	}
	l.mu.Unlock()
	if pause {
		time.Sleep(wrongPause)
		l.mu.Lock()
		l.paused--
		l.mu.Unlock()
	}
	if tooMany {
		wait = time.Unix((now.Unix()/60+1)*60, 0).Sub(now)
	}
	return wait, telling
}

var wrongTokens = prometheus.NewDesc("sluice_admin_wrong_tokens_total", "Requests to admin.listen with a wrong token.",
	nil, nil)

// Describe implements prometheus.Collector.
func (l *LoginThrottle) Describe(out chan<- *prometheus.Desc) { out <- wrongTokens }

// Collect implements prometheus.Collector.
func (l *LoginThrottle) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(wrongTokens, prometheus.CounterValue, float64(l.total.Load()))
}

// forgetMinute forgets the minute before.
func (l *LoginThrottle) forgetMinute(now time.Time) {
	if minute := now.Unix() / 60; minute != l.minute {
		l.minute, l.all = minute, 0
		clear(l.wrong)
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
