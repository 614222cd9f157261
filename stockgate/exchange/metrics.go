package exchange

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	upDesc = prometheus.NewDesc("sluice_fleet_exchange_up",
		"Whether Redis answered the last summary of this instance: 1, or 0, while changes of the fleet hold on.", nil, nil)
	beatsDesc = prometheus.NewDesc("sluice_fleet_summaries_total",
		"Summaries that this instance told the fleet, by whether Redis answered.", []string{"outcome"}, nil)
)

// counts are of beats.
type counts struct {
	answered, lost atomic.Uint64
	up             atomic.Bool
}

func (c *counts) record(err error) {
	if c.up.Store(err == nil); err == nil {
		c.answered.Add(1)
		return
	}
	c.lost.Add(1)
}

// Describe implements [prometheus.Collector].
func Describe(to chan<- *prometheus.Desc) {
	to <- upDesc
	to <- beatsDesc
}

// Collect implements [prometheus.Collector].
func (e *Exchange) Collect(to chan<- prometheus.Metric) {
	up := 0.0
	if e.metrics.up.Load() {
		up = 1
	}
	to <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up)
	to <- prometheus.MustNewConstMetric(beatsDesc, prometheus.CounterValue, float64(e.metrics.answered.Load()), "answered")
	to <- prometheus.MustNewConstMetric(beatsDesc, prometheus.CounterValue, float64(e.metrics.lost.Load()), "lost")
}
