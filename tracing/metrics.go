package tracing

import "github.com/prometheus/client_golang/prometheus"

func desc() *prometheus.Desc {
	return prometheus.NewDesc("sluice_traced_requests_total",
		"Requests sampled for traces, by result: sent to the collector, dropped because the queue was full, "+
			"failed with their message.", []string{"end"}, nil)
}

// Describe implements [prometheus.Collector].
func (t *Tracer) Describe(ch chan<- *prometheus.Desc) { ch <- desc() }

// Collect implements [prometheus.Collector].
func (t *Tracer) Collect(ch chan<- prometheus.Metric) {
	for end, n := range map[string]uint64{"sent": t.sent.Load(), "dropped": t.dropped.Load(), "failed": t.failed.Load()} {
		ch <- prometheus.MustNewConstMetric(desc(), prometheus.CounterValue, float64(n), end)
	}
}
