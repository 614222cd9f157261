package limiter

import "github.com/prometheus/client_golang/prometheus"

// Each of these types is a prometheus.Collector over the counters that it keeps anyway: a scrape reads them, and
// nothing is observed while a request is decided.
var (
	_ prometheus.Collector = (*WindowLimiter)(nil)
	_ prometheus.Collector = (*ConcurrencyLimiter)(nil)
	_ prometheus.Collector = (*ConnLimiter)(nil)
	_ prometheus.Collector = (*RateLimiters)(nil)
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func windowsUsed() *prometheus.Desc {
	return describe("sluice_windows_total",
		"Windows in which a request was admitted, of one SKU or of all together.", "of")
}

func windowsSaturated() *prometheus.Desc {
	return describe("sluice_windows_saturated_total", "Windows that were filled to their max.", "of")
}

// Describe implements [prometheus.Collector].
func (w *WindowLimiter) Describe(to chan<- *prometheus.Desc) {
	to <- windowsUsed()
	to <- windowsSaturated()
}

// Collect implements [prometheus.Collector]. The label of is "sku" or "all"; a window without a cap is not counted.
func (w *WindowLimiter) Collect(to chan<- prometheus.Metric) {
	var used, saturated uint64
	for i := range w.skus.tallies {
		used += w.skus.tallies[i].used.Load()
		saturated += w.skus.tallies[i].saturated.Load()
	}
	collect(to, windowsUsed(), prometheus.CounterValue, float64(used), "sku")
	collect(to, windowsUsed(), prometheus.CounterValue, float64(w.all.tally.used.Load()), "all")
	collect(to, windowsSaturated(), prometheus.CounterValue, float64(saturated), "sku")
	collect(to, windowsSaturated(), prometheus.CounterValue, float64(w.all.tally.saturated.Load()), "all")
}

func connections() *prometheus.Desc {
	return describe("sluice_connections", "Open client connections.")
}

// Describe implements [prometheus.Collector].
func (c *ConnLimiter) Describe(to chan<- *prometheus.Desc) { to <- connections() }

// Collect implements [prometheus.Collector].
func (c *ConnLimiter) Collect(to chan<- prometheus.Metric) {
	collect(to, connections(), prometheus.GaugeValue, float64(c.Count()))
}

func collect(to chan<- prometheus.Metric, of *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(of, kind, v, labels...)
}
