package proxy

import (
	"maps"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/histogram"
	"sluice/proxy/http1"
)

var (
	requestsDesc  = prometheus.NewDesc("sluice_http_requests_total", "Requests answered, by route and status.", []string{"route", "code"}, nil)
	refusedDesc   = prometheus.NewDesc("sluice_refused_requests_total", "Requests refused by the gate, by route and reason.", []string{"route", "reason"}, nil)
	observedDesc  = prometheus.NewDesc("sluice_observed_refusals_total", "Requests that mode = \"observe\", or enforce = false, let through although enforcing would have refused them.", []string{"route", "reason"}, nil)
	tookDesc      = prometheus.NewDesc("sluice_http_request_duration_seconds", "From the request's arrival to the shop's answer, of forwarded requests, by outcome.", []string{"route", "outcome"}, nil)
	decidedDesc   = prometheus.NewDesc("sluice_decision_duration_seconds", "How long the gate took to decide, one request in 64.", nil, nil)
	panicsDesc    = prometheus.NewDesc("sluice_panics_total", "Faults of the gate's own that were caught while it handled a request.", nil, nil)
	rateRefused   = prometheus.NewDesc("sluice_rate_refused_requests_total", "Requests refused by a keyed rate; one that several refuse counts at each.", []string{"rate"}, nil)
	rateObserved  = prometheus.NewDesc("sluice_rate_observed_refusals_total", "Requests that a keyed rate let through although enforcing would have refused them.", []string{"rate"}, nil)
	connRefused   = prometheus.NewDesc("sluice_refused_connections_total", "Connections refused before any HTTP was read, by reason.", []string{"reason"}, nil)
	connObserved  = prometheus.NewDesc("sluice_observed_connection_refusals_total", "Connections that mode = \"observe\", or enforce = false, let in although enforcing would have refused them.", []string{"reason"}, nil)
	malformedDesc = prometheus.NewDesc("sluice_malformed_requests_total", "Requests that are not HTTP/1.1 as it must be, by kind.", []string{"kind"}, nil)
)

// Describe implements prometheus.Collector.
func (p *Proxy) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, refusedDesc, observedDesc, tookDesc, decidedDesc, panicsDesc, rateRefused, rateObserved} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It adds up the shards; nothing on the way of a request waits for it.
func (p *Proxy) Collect(ch chan<- prometheus.Metric) {
	c := p.counts
	c.mu.Lock()
	routes, rates := maps.Clone(c.routes), maps.Clone(c.rates)
	c.mu.Unlock()
	for name, tallies := range routes {
		collectRoute(ch, name, tallies)
	}
	for name, tallies := range rates {
		collectRate(ch, name, tallies)
	}
	decided := make([]*histogram.Histogram, len(c.shards))
	panics := 0.0
	for i := range c.shards {
		decided[i] = &c.shards[i].decided
		panics += float64(c.shards[i].panics.Load())
	}
	ch <- scale.Metric(decidedDesc, decided)
	counter(ch, panicsDesc, panics)
}

func collectRoute(ch chan<- prometheus.Metric, name string, tallies []tally) {
	for reason := Admitted + 1; reason < numReasons; reason++ {
		var refused, observed uint64
		for i := range tallies {
			refused += tallies[i].refused[reason].Load()
			observed += tallies[i].observed[reason].Load()
		}
		counter(ch, refusedDesc, float64(refused), name, reason.String())
		counter(ch, observedDesc, float64(observed), name, reason.String())
	}
	for status := firstCode; status < firstCode+numCodes; status++ {
		var n uint64
		for i := range tallies {
			n += tallies[i].codeOf(status).Load()
		}
		if n > 0 {
			counter(ch, requestsDesc, float64(n), name, strconv.Itoa(status))
		}
	}
	for outcome, outcomeName := range outcomeNames {
		took := make([]*histogram.Histogram, len(tallies))
		for i := range tallies {
			took[i] = &tallies[i].took[outcome]
		}
		ch <- scale.Metric(tookDesc, took, name, outcomeName)
	}
}

func collectRate(ch chan<- prometheus.Metric, name string, tallies []rateTally) {
	var refused, observed uint64
	for i := range tallies {
		refused += tallies[i].refused.Load()
		observed += tallies[i].observed.Load()
	}
	counter(ch, rateRefused, float64(refused), name)
	counter(ch, rateObserved, float64(observed), name)
}

func counter(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	ch <- connRefused
	ch <- connObserved
	ch <- malformedDesc
}

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	for _, reason := range []Reason{ConnOpen, IPConns} {
		counter(ch, connRefused, float64(s.refused[reason].Load()), reason.String())
		counter(ch, connObserved, float64(s.observed[reason].Load()), reason.String())
	}
	counter(ch, connRefused, float64(s.unproven.Load()), "no_proxy_header")
	for kind := range s.malformed {
		if n := s.malformed[kind].Load(); n > 0 {
			counter(ch, malformedDesc, float64(n), http1.Kind(kind).String())
		}
	}
}
