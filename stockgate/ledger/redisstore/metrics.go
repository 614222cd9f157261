package redisstore

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/stockgate/ledger/failover"
)

// Describe implements prometheus.Collector.
func (r *Store) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(r, ch) }

// Collect implements prometheus.Collector.
func (r *Store) Collect(ch chan<- prometheus.Metric) {
	lost := prometheus.NewDesc("sluice_ledger_closed_total",
		"SKUs that this instance closed since their ledger had lost something, by what told: see the log.", []string{"why"},
		nil)
	for _, why := range failover.LossReasons() {
		ch <- prometheus.MustNewConstMetric(lost, prometheus.CounterValue, float64(r.lost[why].Load()), why)
	}
}
