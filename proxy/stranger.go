package proxy

import (
	"log/slog"
	"net/netip"
	"sync"
)

// strangers notices the commonest mistake of a roll-out: a proxy or CDN in front that server.trusted_proxies does not
// name. All its shoppers count as one client then, and are refused together. It looks at one request in strangerSample.
type strangers struct {
	mu      sync.Mutex
	samples int
	from    [4]netip.Addr
	counts  [4]int
	quiet   int64 // monotonic ns until which nothing is said again
}

const (
	strangerSample = 64
	strangerTotal  = 256             // samples that make a judgement
	strangerShare  = 9               // of 10 samples come from few addresses that name somebody behind them
	strangerPause  = 600_000_000_000 // ns between two warnings
)

// note takes one sample: a request from peer, which named a client behind it or did not.
func (s *strangers) note(now int64, peer netip.Addr, named bool, log *slog.Logger, header string) {
	if !s.mu.TryLock() {
		return // another sample is being taken: one more or less says nothing
	}
	defer s.mu.Unlock()
	s.samples++
	if named {
		s.count(peer)
	}
	if s.samples < strangerTotal {
		return
	}
	sum := 0
	for _, n := range s.counts {
		sum += n
	}
	if sum*10 >= s.samples*strangerShare && now >= s.quiet {
		s.quiet = now + strangerPause
		log.Warn("nearly all requests come from few addresses that name somebody behind them, and are not trusted: all their shoppers count as one client; name them in server.trusted_proxies",
			"header", header, "address", s.from[0].String())
	}
	s.samples, s.from, s.counts = 0, [4]netip.Addr{}, [4]int{}
}

func (s *strangers) count(peer netip.Addr) {
	for i := range s.from {
		if s.counts[i] == 0 {
			s.from[i] = peer
		}
		if s.from[i] == peer {
			s.counts[i]++
			return
		}
	}
}
