package upstream

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
)

// Why a request has no response.
const (
	countError = iota
	countTimeout
	countNotSent
	countCapped
	numUnanswered
)

var unanswered = [numUnanswered]string{countError: "error", countTimeout: "timeout", countNotSent: "not_sent",
	countCapped: "capped"}

// newDurations makes the histogram of one target's response times, in classic and in native buckets. The targets share
// no vector: what a removed target has counted goes with it.
func newDurations(url string) prometheus.Histogram {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sluice_upstream_request_duration_seconds",
		Help: "Time from the choice of a target to the end of its response, or to the head of one that is streamed.",

		Buckets:                     []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		NativeHistogramBucketFactor: 1.19, NativeHistogramMaxBucketNumber: 100,
	}, []string{"target"}).WithLabelValues(url).(prometheus.Histogram)
}

// counters counts one target's requests. They are written once for each forwarded request.
type counters struct {
	_          [64]byte
	inFlight   atomic.Int64 // read by every choice of a target: on a cache line of its own
	_          [56]byte
	codes      [500]atomic.Uint64 // 100 to 599
	unanswered [numUnanswered]atomic.Uint64
	took       prometheus.Histogram
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
	case Capped:
		c.unanswered[countCapped].Add(1)
	case Busy:
		return
	case NotSent:
		c.unanswered[countNotSent].Add(1)
		return
	}
	c.took.Observe(took.Seconds())
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("sluice_upstream_"+name, help, labels, nil)
}

var (
	requestsDesc = desc("requests_total", "Requests to a target by the status of its response, or why there was none.",
		"target", "code")
	inFlightDesc = desc("in_flight", "Requests without a response yet, or whose response is still streamed.", "target")
	upDesc       = desc("up", "Whether a target passes its health checks and can be connected to.", "target")
	waitingDesc  = desc("pending_requests", "Requests that wait for a connection, or to hold theirs.")
	waitsDesc    = desc("waits_total",
		"Waits for a connection or to hold one, by their end: served, timed_out, or full: no room to wait.", "end")
	heldDesc   = desc("held_connections", "Connections that clients hold: streams, tunnels and uploads.", "target")
	memoryDesc = desc("response_memory_bytes", "Memory of responses that were read whole and wait for their clients.")
	faultsDesc = desc("connect_errors_total", "Connections to a target that could not be opened, by cause.",
		"target", "cause")
)

// Describe implements prometheus.Collector.
func (p *Pool) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(p, ch) }

// Collect implements prometheus.Collector.
func (p *Pool) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge(waitingDesc, float64(p.waits.now.Load()))
	for end, name := range waitEnds {
		count(waitsDesc, p.waits.ends[end].Load(), name)
	}
	gauge(memoryDesc, float64(p.memory.used.Load()))
	for _, t := range p.targets.Load().all {
		t.mu.Lock()
		held := t.held
		t.mu.Unlock()
		gauge(heldDesc, float64(held), t.url)
		c := &t.counters
		for i := range c.codes {
			if n := c.codes[i].Load(); n > 0 {
				count(requestsDesc, n, t.url, strconv.Itoa(i+100))
			}
		}
		for i := range c.unanswered {
			count(requestsDesc, c.unanswered[i].Load(), t.url, unanswered[i])
		}
		for i, n := range t.faults.counts() {
			count(faultsDesc, n, t.url, causeNames[i])
		}
		up := 0.0
		if !t.health.down.Load() && !t.ejection.failing() {
			up = 1
		}
		gauge(upDesc, up, t.url)
		gauge(inFlightDesc, float64(c.inFlight.Load()), t.url)
		ch <- c.took
	}
}
