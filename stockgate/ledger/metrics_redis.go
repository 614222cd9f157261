package ledger

import "github.com/prometheus/client_golang/prometheus"

// Describe implements prometheus.Collector.
func (r *Redis) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(r, ch) }

// Collect implements prometheus.Collector.
func (r *Redis) Collect(ch chan<- prometheus.Metric) {
	lost := prometheus.NewDesc("sluice_ledger_closed_total",
		"SKUs that this instance closed since their ledger had lost something, by what told: see the log.", []string{"why"}, nil)
	for _, why := range reasons() {
		ch <- prometheus.MustNewConstMetric(lost, prometheus.CounterValue, float64(r.lost[why].Load()), why)
	}
}
