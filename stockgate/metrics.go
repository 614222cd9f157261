package stockgate

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/stockgate/layout"
)

// operation is what a round trip to Redis is for.
type operation int

const (
	read operation = iota
	ping
	set
	add
	list
	bought
	numOperations
)

func (o operation) String() string {
	return [...]string{"read", "ping", "set", "add", "list", "bought"}[o]
}

// failure is the kind of an error of Redis.
type failure int

const (
	timedOut     failure = iota // no answer in time
	disconnected                // no connection, or one that broke
	rejected                    // Redis answered with an error of its own: LOADING, NOAUTH, ...
	leftAlone                   // not asked, since the breaker is open
	numFailures
)

func (f failure) String() string {
	return [...]string{"timeout", "connection", "reply", "breaker"}[f]
}

// kindOf sorts an error of go-redis.
func kindOf(err error) failure {
	var reply interface{ RedisError() }
	var network net.Error
	switch {
	case errors.As(err, &reply):
		return rejected
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return timedOut
	}
	return disconnected
}

// redisMetrics counts round trips. A round trip is a batch, so that these are written some hundred times
// a second whatever the traffic: no padding is needed.
type redisMetrics struct {
	calls  [numOperations]atomic.Uint64
	took   *prometheus.HistogramVec // by operation
	sizes  prometheus.Histogram     // commands in a round trip
	errors [numFailures]atomic.Uint64
	up     atomic.Bool // the last round trip succeeded
}

// init makes the histograms, in classic and in native buckets.
func (m *redisMetrics) init() {
	m.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sluice_redis_command_duration_seconds", Help: "Time of a round trip to Redis.",
		Buckets: []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3,
			500e-3},
		NativeHistogramBucketFactor: 1.19, NativeHistogramZeroThreshold: 1e-6, NativeHistogramMaxBucketNumber: 100,
	}, []string{"operation"})
	for op := range numOperations {
		m.took.WithLabelValues(op.String())
	}
	m.sizes = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "sluice_redis_batch_size", Help: "Commands in a round trip to Redis.",
		Buckets:                     []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024},
		NativeHistogramBucketFactor: 1.19, NativeHistogramMaxBucketNumber: 100,
	})
}

func (m *redisMetrics) observe(op operation, size int, took time.Duration, err error) {
	m.calls[op].Add(1)
	m.took.WithLabelValues(op.String()).Observe(took.Seconds())
	m.sizes.Observe(float64(size))
	m.up.Store(lost(op, err) == nil)
	if err != nil && !errors.Is(err, layout.ErrNotWritable) {
		m.errors[kindOf(err)].Add(1)
	}
}

// Describe implements prometheus.Collector.
func (r *Redis) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(r, ch) }

// Collect implements prometheus.Collector.
func (r *Redis) Collect(ch chan<- prometheus.Metric) {
	calls := prometheus.NewDesc("sluice_redis_calls_total", "Round trips to Redis, one for a whole batch.",
		[]string{"operation"}, nil)
	for op := range numOperations {
		ch <- prometheus.MustNewConstMetric(calls, prometheus.CounterValue, float64(r.metrics.calls[op].Load()), op.String())
	}
	r.replicas.collect(ch)
	r.metrics.took.Collect(ch)
	r.metrics.sizes.Collect(ch)
	failed := prometheus.NewDesc("sluice_redis_errors_total", "Round trips to Redis that failed, by kind.",
		[]string{"kind"}, nil)
	for f := range numFailures {
		ch <- prometheus.MustNewConstMetric(failed, prometheus.CounterValue, float64(r.metrics.errors[f].Load()), f.String())
	}
	up := prometheus.NewDesc("sluice_redis_up", "Whether the last round trip to Redis succeeded.", nil, nil)
	ch <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, number(r.metrics.up.Load()))
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe implements prometheus.Collector.
func (g *Gate) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, ch) }

// Collect implements prometheus.Collector.
func (g *Gate) Collect(ch chan<- prometheus.Metric) {
	fallback := prometheus.NewDesc("sluice_stock_fallback_total",
		"Requests that stock.on_error decided, since the stock could not be known.", []string{"decision"}, nil)
	ch <- prometheus.MustNewConstMetric(fallback, prometheus.CounterValue, float64(g.fallbacks.allowed.Load()), "allow")
	ch <- prometheus.MustNewConstMetric(fallback, prometheus.CounterValue, float64(g.fallbacks.rejected.Load()), "reject")
}

// SKUReading is what the gate has read of one SKU.
type SKUReading struct {
	Free     int64  // units, at least 0
	At       int64  // when the last reading began, in ns of the gate's clock
	Readings uint64 // since the gate has known the SKU; a SKU that no request asks for is forgotten after a while
}

// LastReading returns what was read of sku last. ok is false where no stock of it is known. It reads nothing itself.
func (g *Gate) LastReading(sku string) (r SKUReading, ok bool) {
	e := g.table.Find([]byte(sku))
	if e == nil {
		return r, false
	}
	v, at := e.reading()
	r = SKUReading{Free: max(e.free.Load(), 0), At: at, Readings: e.readings.Load()}
	return r, v == onSale || v == soldOut || v == notOnSale
}

// Readings counts what was read of all SKUs: one for each SKU in a round trip.
func (g *Gate) Readings() uint64 { return g.poller.readings.Load() }
