package metrics

import (
	"maps"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/proxy/reject"
)

var (
	requestsDesc = prometheus.NewDesc("sluice_http_requests_total",
		"Answered requests, by route and status code.", []string{"route", "code"}, nil)
	rejectedDesc = prometheus.NewDesc("sluice_rejected_requests_total",
		"Rejected requests, by route and reason.", []string{"route", "reason"}, nil)
	observedDesc = prometheus.NewDesc("sluice_observed_rejections_total",
		"Requests that were admitted in observe mode and would otherwise have been rejected, by route and reason.",
		[]string{"route", "reason"}, nil)
	detailsDesc = prometheus.NewDesc("sluice_rejection_details_total",
		"Rejected requests whose rejection has a cause more exact than its reason, by cause.", []string{"cause"}, nil)
	panicsDesc = prometheus.NewDesc("sluice_panics_total",
		"Internal errors (panics) that were caught while a request was handled.", nil, nil)
	bodyMemoryDesc = prometheus.NewDesc("sluice_body_memory_bytes",
		"Memory that request bodies hold, of server.body_memory.", nil, nil)
	rateRejectedDesc = prometheus.NewDesc("sluice_rate_rejected_requests_total",
		"Requests rejected by a keyed rate limit, or a limit in flight. A request that exceeds several of them counts "+
			"for each.",
		[]string{"rate"}, nil)
	rateObservedDesc = prometheus.NewDesc("sluice_rate_observed_rejections_total",
		"Requests that a keyed rate limit, or a limit in flight, in observe mode would have rejected.", []string{"rate"}, nil)
)

// Describe implements prometheus.Collector.
func (c *Counters) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		requestsDesc, rejectedDesc, observedDesc, detailsDesc, panicsDesc,
		bodyMemoryDesc, rateRejectedDesc, rateObservedDesc,
	} {
		ch <- d
	}
	c.took.Describe(ch)
	c.decided.Describe(ch)
}

// Collect implements prometheus.Collector. It adds up the shards; no request waits for it.
func (c *Counters) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	routes, rates := maps.Clone(c.routes), maps.Clone(c.rates)
	c.mu.Unlock()
	for name, shards := range routes {
		collectRoute(ch, name, shards)
	}
	for name, shards := range rates {
		rejected, observed := sumRate(shards)
		collectCounter(ch, rateRejectedDesc, rejected, name)
		collectCounter(ch, rateObservedDesc, observed, name)
	}
	var panics uint64
	for i := range c.shards {
		panics += c.shards[i].panics.Load()
	}
	c.took.Collect(ch)
	c.decided.Collect(ch)
	collectCounter(ch, panicsDesc, panics)
	ch <- prometheus.MustNewConstMetric(bodyMemoryDesc, prometheus.GaugeValue, float64(c.bodyMemory.Load()))
	causes := c.sumCauses()
	for cause := reject.NoCause + 1; cause < reject.NumCauses; cause++ {
		collectCounter(ch, detailsDesc, uint64(causes[cause]), cause.String())
	}
}

func collectRoute(ch chan<- prometheus.Metric, name string, shards []RouteShard) {
	for reason := reject.Admitted + 1; reason < reject.NumReasons; reason++ {
		var rejected, observed uint64
		for i := range shards {
			rejected += shards[i].rejected[reason].Load()
			observed += shards[i].observed[reason].Load()
		}
		collectCounter(ch, rejectedDesc, rejected, name, reason.String())
		collectCounter(ch, observedDesc, observed, name, reason.String())
	}
	for code := range numStatuses {
		var n uint64
		for i := range shards {
			n += shards[i].statuses[code].Load()
		}
		if n > 0 {
			collectCounter(ch, requestsDesc, n, name, strconv.Itoa(firstStatus+code))
		}
	}
}

func collectCounter(ch chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}
