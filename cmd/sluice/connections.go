package main

import (
	"net/netip"

	"sluice/limiter"
	"sluice/proxy"
)

// connections counts those of trusted proxies in all alone.
type connections struct{ *limiter.Conns }

func (c connections) Open(client netip.Addr, perClient bool) proxy.Reason {
	if !perClient {
		client = netip.Addr{}
	}
	switch c.Conns.Open(client) {
	case limiter.Admitted:
		return proxy.Admitted
	case limiter.TotalFull:
		return proxy.ConnOpen
	}
	return proxy.IPConns
}

func (c connections) Close(client netip.Addr, perClient bool) {
	if !perClient {
		client = netip.Addr{}
	}
	c.Conns.Close(client)
}
