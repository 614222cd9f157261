package limiter

import "github.com/prometheus/client_golang/prometheus"

func placesTaken() *prometheus.Desc {
	return describe("sluice_gated_in_flight", "Requests of all routes but pass that have a place inside the shop.")
}

func inFlightLimit() *prometheus.Desc {
	return describe("sluice_upstream_in_flight_limit",
		"Requests that may be inside the shop at the same time, as of now; 0 = no cap.")
}

func queueLength() *prometheus.Desc {
	return describe("sluice_queue_length", "Requests that wait for a place inside the shop.")
}

func queueWaits() *prometheus.Desc {
	return describe("sluice_queue_waits_total", "Waits for a place inside the shop, by how they ended.", "end")
}

// Describe implements [prometheus.Collector].
func (p *ConcurrencyLimiter) Describe(to chan<- *prometheus.Desc) {
	to <- placesTaken()
	to <- inFlightLimit()
	to <- queueLength()
	to <- queueWaits()
}

// Collect implements [prometheus.Collector]. The label end is "admitted", "timed_out", "gone": the client had left
// when its turn came, or "displaced": its place in the queue went to one of another class.
func (p *ConcurrencyLimiter) Collect(to chan<- prometheus.Metric) {
	collect(to, placesTaken(), prometheus.GaugeValue, float64(p.InFlight()))
	collect(to, inFlightLimit(), prometheus.GaugeValue, float64(p.Max()))
	collect(to, queueLength(), prometheus.GaugeValue, float64(p.Queued()))
	collect(to, queueWaits(), prometheus.CounterValue, float64(p.waits.admitted.Load()), "admitted")
	collect(to, queueWaits(), prometheus.CounterValue, float64(p.waits.timedOut.Load()), "timed_out")
	collect(to, queueWaits(), prometheus.CounterValue, float64(p.waits.gone.Load()), "gone")
	collect(to, queueWaits(), prometheus.CounterValue, float64(p.waits.displaced.Load()), "displaced")
}
