package gateway

import (
	"net/netip"

	"sluice/limiter"
	"sluice/proxy/reject"
)

// connections are the limits of connections, as a server asks them. Those of trusted proxies are counted in all alone.
type connections struct{ *limiter.ConnLimiter }

func (c connections) Open(client netip.Addr, perClient bool) reject.Reason {
	if !perClient {
		client = netip.Addr{}
	}
	switch c.ConnLimiter.Open(client) {
	case limiter.Admitted:
		return reject.Admitted
	case limiter.TotalFull:
		return reject.ConnOpen
	}
	return reject.IPConns
}

func (c connections) Close(client netip.Addr, perClient bool) {
	if !perClient {
		client = netip.Addr{}
	}
	c.ConnLimiter.Close(client)
}
