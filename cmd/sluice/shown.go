package main

import "github.com/prometheus/client_golang/prometheus"

// shown are the metrics that the dashboard reads once a second, however idle the gate is: without those of every route,
// which the proxy adds up for it, and without what only the page of metrics has.
func (g *gate) shown() *prometheus.Registry {
	shown := prometheus.NewRegistry()
	shown.MustRegister(g.server.Collector(), g.shop, g.windows, g.inFlight.all, g.conns)
	if g.redis != nil {
		shown.MustRegister(g.redis)
	}
	if g.orders != nil {
		shown.MustRegister(g.orders)
	}
	return shown
}
