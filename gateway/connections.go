package gateway

import (
	"net/netip"

	"sluice/config"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/proxy/reject"
)

// Connections are the limits of connections, as a server asks them.
func (in *limiters) Connections() proxy.Connections { return connections{in.conns} }

// MaxClients is how many descriptors clients may hold, those included that still read a rejection. 0 = no bound is
// known.
func (in *limiters) MaxClients(c *config.Config) int { return in.files.clients(c) }

// OperatorConns is how many connections one listener for operators may have.
func (in *limiters) OperatorConns() int { return in.files.aside() }

// connections counts those of trusted proxies in all alone.
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
