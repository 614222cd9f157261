package exchange

import "github.com/prometheus/client_golang/prometheus"

var (
	upDesc = prometheus.NewDesc("sluice_fleet_exchange_up",
		"Whether Redis answered the last summary of this instance: 1, or 0, while changes of the fleet hold on.", nil, nil)
	beatsDesc = prometheus.NewDesc("sluice_fleet_summaries_total",
		"Summaries that this instance told the fleet, by whether Redis answered.", []string{"outcome"}, nil)
)

// Describe implements [prometheus.Collector].
func Describe(to chan<- *prometheus.Desc) {
	to <- upDesc
	to <- beatsDesc
}

// Collect implements [prometheus.Collector].
func (e *Exchange) Collect(to chan<- prometheus.Metric) { e.redis.Collect(to, beatsDesc, upDesc) }
