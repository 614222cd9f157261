package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/stockgate"
)

// openDemand follows which SKUs are wanted.
func (g *Gateway) openDemand() {
	g.demand = stockgate.NewWatch(stockgate.WatchOptions{
		Counters: g.counters, Most: g.Config.Ops.MetricsMaxSKUs, Gate: g.Stock, Source: g.source,
		Ledger: func(sku string) bool {
			d := g.reserver()
			return d != nil && d.Knows(sku)
		},
		Now: g.now, Log: g.log,
	})
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
	if o := g.Orders(); o != nil {
		shown.MustRegister(o)
	}
	g.shown = shown
	return shown
}

// clockSkewGauge is measured with and without a sale.
func (g *Gateway) clockSkewGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_sale_clock_skew_seconds",
		Help: "By how much Redis' clock is ahead of this machine's, as last measured.",
	}, func() float64 { return g.clockSkew().Seconds() })
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
