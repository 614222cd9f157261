package app

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/config"
	"sluice/stockgate/demand"
)

// labelledSKUs are those that metrics count by name: of the sales in the file, the first by name, at most
// ops.metrics_max_skus. A SKU that only a request names has no label.
func labelledSKUs(c *config.Config) (named []string) {
	for i := range c.Sales {
		named = append(named, c.Sales[i].SKUs...)
	}
	slices.Sort(named)
	named = slices.Compact(named)
	return named[:min(len(named), c.Ops.MetricsMaxSKUs)]
}

// openDemand follows which SKUs are wanted.
func (g *Gateway) openDemand() {
	o := demand.Options{
		Counters: g.proxy.Counters(), Named: labelledSKUs(g.Config), Most: g.Config.Ops.MetricsMaxSKUs,
		Gate: g.Stock, Source: g.source, Reads: g.looksAtShopStock(g.Config), Now: g.now, Log: g.log,
	}
	if g.Orders != nil {
		o.Ledger = func(sku string) bool {
			d := g.Orders.reserver.Load()
			return d != nil && d.Knows(sku)
		}
	}
	g.demand = demand.New(o)
	g.Metrics.MustRegister(g.demand)
}

// dashboardMetrics are the metrics that the dashboard reads once a second, however idle the gate is: without those of
// every route, which the proxy adds up for it, and without what only the page of metrics has.
func (g *Gateway) dashboardMetrics() *prometheus.Registry {
	shown := prometheus.NewRegistry()
	shown.MustRegister(g.Server.Collector(), g.shop, g.demand)
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

func restartPendingGauge() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_config_restart_pending",
		Help: "Keys of the configuration file that wait for a restart; until then the values before them are in force."})
}
