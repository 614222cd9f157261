package ledger

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/histogram"
)

// tripScale is of a round trip's size, in calls.
var tripScale = histogram.Sizes(1, 2, 4, 8, 16, 32, together)

// Describe implements prometheus.Collector.
func (r *Redis) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(r, ch) }

// Collect implements prometheus.Collector.
func (r *Redis) Collect(ch chan<- prometheus.Metric) {
	lost := prometheus.NewDesc("sluice_ledger_closed_total",
		"SKUs that this instance closed since their ledger had lost something, by what told: see the log.", []string{"why"}, nil)
	for _, why := range reasons() {
		ch <- prometheus.MustNewConstMetric(lost, prometheus.CounterValue, float64(r.lost[why].Load()), why)
	}
	trips := prometheus.NewDesc("sluice_ledger_trip_calls", "Calls for orders and settlements in one round trip.", nil, nil)
	ch <- tripScale.Metric(trips, []*histogram.Histogram{&r.pipes.sizes})
}
