package limiter

import "github.com/prometheus/client_golang/prometheus"

// The collectors read the counters that their types keep anyway: nothing is observed while a request is decided.
var (
	windowsUsed = describe("sluice_windows_total",
		"Windows in which a request was admitted, of one SKU or of all together.", "of")
	windowsSaturated = describe("sluice_windows_saturated_total", "Windows that were filled to their max.", "of")
	connections      = describe("sluice_connections", "Open client connections.")

	placesTaken = describe("sluice_gated_in_flight", "Requests of all routes but pass that have a place inside the shop.")
	maxPlaces   = describe("sluice_upstream_in_flight_limit",
		"Requests that may be inside the shop at the same time, as of now; 0 = no cap.")
	queueLength = describe("sluice_queue_length", "Requests that wait for a place inside the shop.")
	queueWaits  = describe("sluice_queue_waits_total", "Waits for a place inside the shop, by how they ended.", "end")

	rateFill = describe("sluice_rate_table_fill_ratio",
		"Part of a keyed rate's table that holds what has not been earned back, by a sample; "+
			"above 0.5 false rejections become likely: raise max_keys.", "rate")
	rateBytes = describe("sluice_rate_table_bytes", "Memory of a keyed rate's table, which max_keys fixes.", "rate")
	rateNear  = describe("sluice_rate_nearly_limited_total",
		"Requests that a keyed rate admitted, and whose key had then used 80 % of its burst or more.", "rate")

	keysInFlight = describe("sluice_in_flight_keys",
		"Keys of a limit in flight that have requests in flight.", "limit")
	requestsInFlight = describe("sluice_in_flight_requests", "Requests in flight that a limit in flight counts.", "limit")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func count(to chan<- prometheus.Metric, of *prometheus.Desc, n uint64, labels ...string) {
	to <- prometheus.MustNewConstMetric(of, prometheus.CounterValue, float64(n), labels...)
}

func gauge(to chan<- prometheus.Metric, of *prometheus.Desc, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, v, labels...)
}

// Describe implements [prometheus.Collector].
func (w *WindowLimiter) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, to) }

// Collect implements [prometheus.Collector]. The label of is "sku" or "all"; a window without a cap is not counted.
func (w *WindowLimiter) Collect(to chan<- prometheus.Metric) {
	var used, saturated uint64
	for i := range w.skus.tallies {
		used += w.skus.tallies[i].used.Load()
		saturated += w.skus.tallies[i].saturated.Load()
	}
	count(to, windowsUsed, used, "sku")
	count(to, windowsUsed, w.all.used.Load(), "all")
	count(to, windowsSaturated, saturated, "sku")
	count(to, windowsSaturated, w.all.saturated.Load(), "all")
}

// Describe implements [prometheus.Collector].
func (c *ConnLimiter) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

// Collect implements [prometheus.Collector].
func (c *ConnLimiter) Collect(to chan<- prometheus.Metric) {
	gauge(to, connections, float64(c.Count()))
}

// Describe implements [prometheus.Collector].
func (p *ConcurrencyLimiter) Describe(to chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(p, to)
}

// Collect implements [prometheus.Collector]. The label end is "admitted", "timed_out", "gone": the client had left
// when its turn came, or "displaced": priority gave its place in the queue to another.
func (p *ConcurrencyLimiter) Collect(to chan<- prometheus.Metric) {
	gauge(to, placesTaken, float64(p.InFlight()))
	gauge(to, maxPlaces, float64(p.Max()))
	gauge(to, queueLength, float64(p.Queued()))
	count(to, queueWaits, p.waits.admitted.Load(), "admitted")
	count(to, queueWaits, p.waits.timedOut.Load(), "timed_out")
	count(to, queueWaits, p.waits.gone.Load(), "gone")
	count(to, queueWaits, p.waits.displaced.Load(), "displaced")
}

// Describe implements [prometheus.Collector].
func (s *RateLimiters) Describe(to chan<- *prometheus.Desc) {
	to <- rateFill
	to <- rateBytes
	to <- rateNear
}

// Collect implements [prometheus.Collector].
func (s *RateLimiters) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	rates := s.inForce
	s.mu.Unlock()
	now := s.now()
	for _, r := range rates {
		gauge(to, rateFill, r.fill(now), r.spec.Name)
		gauge(to, rateBytes, float64(r.bytes()), r.spec.Name)
		count(to, rateNear, r.near.sum(), r.spec.Name)
	}
}

// Describe implements [prometheus.Collector].
func (s *InFlightLimiters) Describe(to chan<- *prometheus.Desc) {
	to <- keysInFlight
	to <- requestsInFlight
}

// Collect implements [prometheus.Collector].
func (s *InFlightLimiters) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	all := s.inForce
	s.mu.Unlock()
	for _, l := range all {
		keys, requests := l.InFlight()
		gauge(to, keysInFlight, float64(keys), l.spec.Name)
		gauge(to, requestsInFlight, float64(requests), l.spec.Name)
	}
}
