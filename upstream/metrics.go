package upstream

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// What a request that got no answer is counted as.
const (
	countError = iota
	countTimeout
	countNotSent
	numUnanswered
)

var unanswered = [numUnanswered]string{countError: "error", countTimeout: "timeout", countNotSent: "not_sent"}

// durations are the histogram's upper bounds.
var durations = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// counters counts one target's requests. They are written once for each admitted request; a refused
// one never comes here.
type counters struct {
	_          [64]byte
	inFlight   atomic.Int64 // read by every choice of a target: on a cache line of its own
	_          [56]byte
	codes      [500]atomic.Uint64 // 100 to 599
	unanswered [numUnanswered]atomic.Uint64
	took       [len(durations) + 1]atomic.Uint64
	sum        atomic.Int64 // ns
}

// count notes how one request ended. Only those of which a byte was written have a duration: to the
// end of the answer, or to its head if its body is a stream.
func (c *counters) count(o proxy.Outcome, resp *fasthttp.Response, took time.Duration) {
	switch o {
	case proxy.Answered:
		c.codes[resp.StatusCode()-100].Add(1)
	case proxy.TimedOut:
		c.unanswered[countTimeout].Add(1)
	case proxy.Broken:
		c.unanswered[countError].Add(1)
	case proxy.NotSent:
		c.unanswered[countNotSent].Add(1)
		return
	}
	i := 0
	for i < len(durations) && took > durations[i] {
		i++
	}
	c.took[i].Add(1)
	c.sum.Add(int64(took))
}

// descriptions are the metrics' names; they are made once for each Pool.
type descriptions struct{ requests, duration, inFlight, up *prometheus.Desc }

func describe() descriptions {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("sluice_upstream_"+name, help, labels, nil)
	}
	return descriptions{
		requests: d("requests_total", "Requests to a target by the status of its answer, or why there was none.", "target", "code"),
		duration: d("request_duration_seconds", "Time from the choice of a target to the end of its answer, or to the head of one that is streamed.", "target"),
		inFlight: d("in_flight", "Requests that a target has not answered yet, or is still streaming.", "target"),
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
		p.emitDurations(ch, t)
	}
}

func (p *Pool) emit(ch chan<- prometheus.Metric, d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(d, kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	ch <- m
}

func (p *Pool) emitDurations(ch chan<- prometheus.Metric, t *target) {
	buckets := make(map[float64]uint64, len(durations))
	var count uint64
	for i := range t.counters.took {
		count += t.counters.took[i].Load()
		if i < len(durations) {
			buckets[durations[i].Seconds()] = count
		}
	}
	sum := time.Duration(t.counters.sum.Load()).Seconds()
	m, err := prometheus.NewConstHistogram(p.desc.duration, count, sum, buckets, t.url)
	if err != nil {
		m = prometheus.NewInvalidMetric(p.desc.duration, err)
	}
	ch <- m
}
