package upstream

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"sluice/histogram"
)

// Why a request has no response.
const (
	countError = iota
	countTimeout
	countNotSent
	numUnanswered
)

var unanswered = [numUnanswered]string{countError: "error", countTimeout: "timeout", countNotSent: "not_sent"}

var durations = histogram.Seconds(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

// counters counts one target's requests. They are written once for each forwarded request.
type counters struct {
	_          [64]byte
	inFlight   atomic.Int64 // read by every choice of a target: on a cache line of its own
	_          [56]byte
	codes      [500]atomic.Uint64 // 100 to 599
	unanswered [numUnanswered]atomic.Uint64
	took       histogram.Histogram
}

// count counts one outcome. Only requests of which a byte was written have a duration: to the end of the response, or
// to its head if the body is a stream.
func (c *counters) count(o Outcome, resp *fasthttp.Response, took time.Duration) {
	switch o {
	case Answered:
		c.codes[resp.StatusCode()-100].Add(1)
	case TimedOut:
		c.unanswered[countTimeout].Add(1)
	case Broken:
		c.unanswered[countError].Add(1)
	case NotSent:
		c.unanswered[countNotSent].Add(1)
		return
	}
	c.took.Observe(durations, took.Seconds())
}

// descriptions are the metrics' names. They are made once for each Pool.
type descriptions struct{ requests, duration, inFlight, up *prometheus.Desc }

func describe() descriptions {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("sluice_upstream_"+name, help, labels, nil)
	}
	return descriptions{
		requests: d("requests_total", "Requests to a target by the status of its response, or why there was none.",
			"target", "code"),
		duration: d("request_duration_seconds",
			"Time from the choice of a target to the end of its response, or to the head of one that is streamed.", "target"),
		inFlight: d("in_flight", "Requests without a response yet, or whose response is still streamed.", "target"),
		up:       d("up", "Whether a target passes its health checks and can be connected to.", "target"),
	}
}

// Describe implements prometheus.Collector.
func (p *Pool) Describe(ch chan<- *prometheus.Desc) {
	ch <- p.desc.requests
	ch <- p.desc.duration
	ch <- p.desc.inFlight
	ch <- p.desc.up
}

// Collect implements prometheus.Collector.
func (p *Pool) Collect(ch chan<- prometheus.Metric) {
	now := p.clock.now()
	for _, t := range p.targets.Load().all {
		c := &t.counters
		for i := range c.codes {
			if n := c.codes[i].Load(); n > 0 {
				p.emit(ch, p.desc.requests, prometheus.CounterValue, float64(n), t.url, strconv.Itoa(i+100))
			}
		}
		for i := range c.unanswered {
			p.emit(ch, p.desc.requests, prometheus.CounterValue, float64(c.unanswered[i].Load()), t.url, unanswered[i])
		}
		up := 0.0
		if t.usable(now) {
			up = 1
		}
		p.emit(ch, p.desc.up, prometheus.GaugeValue, up, t.url)
		p.emit(ch, p.desc.inFlight, prometheus.GaugeValue, float64(c.inFlight.Load()), t.url)
		ch <- durations.Metric(p.desc.duration, []*histogram.Histogram{&c.took}, t.url)
	}
}

func (p *Pool) emit(ch chan<- prometheus.Metric, d *prometheus.Desc, kind prometheus.ValueType, v float64,
	labels ...string) {
	m, err := prometheus.NewConstMetric(d, kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	ch <- m
}
