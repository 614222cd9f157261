package tracing

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Counts are of the requests that were sampled. It is a prometheus.Collector; the zero value counts from 0.
type Counts struct{ sent, dropped, failed atomic.Uint64 }

func desc() *prometheus.Desc {
	return prometheus.NewDesc("sluice_traced_requests_total",
		"Requests sampled for traces, by result: sent to the collector, dropped because the queue was full, "+
			"failed with their message.", []string{"end"}, nil)
}

// Describe implements [prometheus.Collector].
func (c *Counts) Describe(ch chan<- *prometheus.Desc) { ch <- desc() }

// Collect implements [prometheus.Collector].
func (c *Counts) Collect(ch chan<- prometheus.Metric) {
	for end, n := range map[string]uint64{"sent": c.sent.Load(), "dropped": c.dropped.Load(), "failed": c.failed.Load()} {
		ch <- prometheus.MustNewConstMetric(desc(), prometheus.CounterValue, float64(n), end)
	}
}
