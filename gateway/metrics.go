package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/gateway/stores"
	"sluice/stockgate/demand"
)

// openDemand follows which SKUs are wanted.
func (g *Gateway) openDemand() {
	o := demand.Options{
		Counters: g.proxy.Counters(), Named: stores.LabelledSKUs(g.Config), Most: g.Config.Ops.MetricsMaxSKUs,
		Gate: g.Stock, Source: g.source, Reads: g.looksAtShopStock(g.Config), Now: g.now, Log: g.log,
	}
	if g.Orders != nil {
		o.Ledger = func(sku string) bool {
			d := g.Orders.Reserver()
			return d != nil && d.Knows(sku)
		}
	}
	g.demand = demand.New(o)
	g.onClose(g.demand.Close)
	g.Metrics.MustRegister(g.demand)
}

// dashboardMetrics are the metrics that the dashboard reads once a second, however idle the gate is: without those of
// every route, which the proxy adds up for it, and without what only the page of metrics has.
func (g *Gateway) dashboardMetrics() *prometheus.Registry {
	shown := prometheus.NewRegistry()
	shown.MustRegister(g.Server, g.shop, g.demand)
	shown.MustRegister(g.limits.DashboardCollectors()...)
	if g.redis != nil {
		shown.MustRegister(g.redis)
	}
	if g.Orders != nil {
		shown.MustRegister(g.Orders)
	}
	return shown
}

func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_build_info", Help: "The version that runs; always 1.",
		ConstLabels: prometheus.Labels{"version": version}})
	g.Set(1)
	return g
}

func reloadGauge() prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_config_last_reload_successful",
		Help: "Whether the last configuration that was read was good: 1, or 0."})
	g.Set(1)
	return g
}
