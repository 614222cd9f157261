package sale

import "github.com/prometheus/client_golang/prometheus"

var (
	stateDesc = prometheus.NewDesc("sluice_sale_state",
		"Where each sale stands on this instance: 1 for its state, 0 for the others.", []string{"sale", "state"}, nil)
	wrongDesc = prometheus.NewDesc("sluice_sale_clock_wrong",
		"1 while the clocks are more than 2 s apart: no sale begins on this instance.", nil, nil)
	beatsDesc = prometheus.NewDesc("sluice_sale_beats_total",
		"Questions for Redis' clock and the operators' words, by whether Redis answered.", []string{"outcome"}, nil)
)

// Describe implements prometheus.Collector.
func (b *Schedule) Describe(ch chan<- *prometheus.Desc) {
	ch <- stateDesc
	ch <- wrongDesc
	ch <- beatsDesc
}

// Collect implements prometheus.Collector.
func (b *Schedule) Collect(ch chan<- prometheus.Metric) {
	for _, s := range b.All() {
		for state := On; state <= Ended; state++ {
			ch <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, oneIf(s.State == state), s.Name,
				state.String())
		}
	}
	_, wrong := b.Skew()
	ch <- prometheus.MustNewConstMetric(wrongDesc, prometheus.GaugeValue, oneIf(wrong))
	b.beats.Collect(ch, beatsDesc, nil)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
