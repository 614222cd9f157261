package fleet

import "github.com/prometheus/client_golang/prometheus"

var (
	instancesDesc = prometheus.NewDesc("sluice_fleet_instances",
		"Instances that divide the budget, as this one counts them; 0 = not counted yet.", nil, nil)
	upDesc = prometheus.NewDesc("sluice_fleet_up",
		"Whether Redis answered the last heartbeat: 1, or 0, while the last known number stands.", nil, nil)
	beatsDesc = prometheus.NewDesc("sluice_fleet_heartbeats_total",
		"Heartbeats of this instance, by whether Redis answered.", []string{"outcome"}, nil)
)

// Describe implements [prometheus.Collector].
func (m *Member) Describe(ch chan<- *prometheus.Desc) {
	ch <- instancesDesc
	ch <- upDesc
	ch <- beatsDesc
}

// Collect implements [prometheus.Collector].
func (m *Member) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(instancesDesc, prometheus.GaugeValue, float64(m.last().Of))
	m.beats.Collect(ch, beatsDesc, upDesc)
}
