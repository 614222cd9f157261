package fleet

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	instancesDesc = prometheus.NewDesc("sluice_fleet_instances",
		"Instances that divide the budget, as this one counts them; 0 = not counted yet.", nil, nil)
	upDesc = prometheus.NewDesc("sluice_fleet_up",
		"Whether Redis answered the last heartbeat: 1, or 0, while the last known number stands.", nil, nil)
	beatsDesc = prometheus.NewDesc("sluice_fleet_heartbeats_total",
		"Heartbeats of this instance, by whether Redis answered.", []string{"outcome"}, nil)
)

// counts are of heartbeats.
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
func (m *Member) Describe(ch chan<- *prometheus.Desc) {
	ch <- instancesDesc
	ch <- upDesc
	ch <- beatsDesc
}

// Collect implements [prometheus.Collector].
func (m *Member) Collect(ch chan<- prometheus.Metric) {
	up := 0.0
	if m.counts.up.Load() {
		up = 1
	}
	ch <- prometheus.MustNewConstMetric(instancesDesc, prometheus.GaugeValue, float64(m.Share().Of))
	ch <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up)
	ch <- prometheus.MustNewConstMetric(beatsDesc, prometheus.CounterValue, float64(m.counts.answered.Load()), "answered")
	ch <- prometheus.MustNewConstMetric(beatsDesc, prometheus.CounterValue, float64(m.counts.lost.Load()), "lost")
}
