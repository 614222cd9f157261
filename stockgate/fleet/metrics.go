package fleet

import "github.com/prometheus/client_golang/prometheus"

var (
	instancesDesc = prometheus.NewDesc("sluice_fleet_instances",
		"Instances that run, as this one counts them; limits of the fleet are divided by it. 0 = not counted yet.", nil, nil)
	upDesc = prometheus.NewDesc("sluice_fleet_up",
		"Whether Redis answered the last heartbeat: 1, or 0, while what was known stands.", nil, nil)
	beatsDesc = prometheus.NewDesc("sluice_fleet_heartbeats_total",
		"Heartbeats of this instance, by whether Redis answered.", []string{"outcome"}, nil)
	countsDesc = prometheus.NewDesc("sluice_fleet_rate_calls_total",
		"Calls that count rates of the fleet together, by whether Redis answered.", []string{"outcome"}, nil)
	sharedDesc = prometheus.NewDesc("sluice_fleet_shared_keys",
		"Keys of a rate of the fleet that are counted together at the moment; others have their part.", []string{"rate"}, nil)
)

// Describe tells the metrics of an instance of a fleet.
func Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{instancesDesc, upDesc, beatsDesc, countsDesc, sharedDesc} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (f *Fleet) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(instancesDesc, prometheus.GaugeValue, float64(f.Share().Of))
	f.beats.Collect(to, beatsDesc, upDesc)
	f.counts.Collect(to, countsDesc, nil)
	for name, rate := range *f.rates.Load() {
		to <- prometheus.MustNewConstMetric(sharedDesc, prometheus.GaugeValue, float64(rate.Shared()), name)
	}
}
