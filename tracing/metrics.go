package tracing

import "github.com/prometheus/client_golang/prometheus"

func desc() *prometheus.Desc {
	return prometheus.NewDesc("sluice_traced_requests_total", "Requests that were sampled for traces, by what became of that: sent to the collector, dropped since the queue was full, failed with the message that held them.", []string{"end"}, nil)
}

// Describe implements [prometheus.Collector].
func (t *Tracer) Describe(ch chan<- *prometheus.Desc) { ch <- desc() }

// Collect implements [prometheus.Collector].
func (t *Tracer) Collect(ch chan<- prometheus.Metric) {
	for end, n := range map[string]uint64{"sent": t.sent.Load(), "dropped": t.dropped.Load(), "failed": t.failed.Load()} {
		ch <- prometheus.MustNewConstMetric(desc(), prometheus.CounterValue, float64(n), end)
	}
}
