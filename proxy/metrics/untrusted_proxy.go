package metrics

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
)

// UntrustedProxyDetector warns of the commonest mistake of a deployment: a proxy or CDN in front of Sluice that
// server.trusted_proxies does not name. All clients behind it count as one client and share one client's limits.
//
// It samples every request until its first judgement, so that the first test of a deployment shows the mistake, and
// one request in 64 after that. It is safe for concurrent use.
type UntrustedProxyDetector struct {
	header string
	log    *slog.Logger
	judged atomic.Bool // after the first judgement

	mu         sync.Mutex
	samples    int
	peers      [maxProxies]netip.Addr
	counts     [maxProxies]int
	quietUntil int64 // monotonic ns; no warning before
}

const (
	maxProxies        = 4               // addresses that are counted; more make no suspicion
	proxySamples      = 64              // samples of one judgement
	proxySamplePeriod = 64              // requests per sample, after the first judgement
	proxyWarningPause = 600_000_000_000 // ns between two warnings
)

// NewUntrustedProxyDetector makes a detector. header is the client header that the warning names, like X-Forwarded-For.
// A reload that keeps the header keeps the detector, so that the pause between two warnings stays.
func NewUntrustedProxyDetector(header string, log *slog.Logger) *UntrustedProxyDetector {
	return &UntrustedProxyDetector{header: header, log: log}
}

// Samples reports whether the request that arrived at now (monotonic ns) is to be observed.
func (d *UntrustedProxyDetector) Samples(now int64) bool {
	return now%proxySamplePeriod == 0 || !d.judged.Load()
}

// Observe takes one sample: a request from peer, which is not trusted. namesClient reports whether it has the client
// header. A sample that meets another one is dropped instead of waiting for it.
func (d *UntrustedProxyDetector) Observe(now int64, peer netip.Addr, namesClient bool) {
	if !d.mu.TryLock() {
		return
	}
	defer d.mu.Unlock()
	d.samples++
	if namesClient {
		d.count(peer)
	}
	if d.samples < proxySamples {
		return
	}
	d.evaluate(now)
	d.samples, d.peers, d.counts = 0, [maxProxies]netip.Addr{}, [maxProxies]int{}
	d.judged.Store(true)
}

// evaluate warns when nine of ten samples come from few addresses that name a client. The caller holds d.mu.
func (d *UntrustedProxyDetector) evaluate(now int64) {
	suspect := 0
	for _, n := range d.counts {
		suspect += n
	}
	if suspect*10 < d.samples*9 || now < d.quietUntil {
		return
	}
	d.quietUntil = now + proxyWarningPause
	d.log.Warn("an untrusted proxy sends nearly all requests; all clients behind it count as one client: "+
		"add its address to server.trusted_proxies", "header", d.header, "address", d.peers[0].String())
}

func (d *UntrustedProxyDetector) count(peer netip.Addr) {
	for i := range d.peers {
		if d.counts[i] == 0 {
			d.peers[i] = peer
		}
		if d.peers[i] == peer {
			d.counts[i]++
			return
		}
	}
}
