package ledger

import (
	"cmp"
	"maps"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Labels of orders by their answers, and of settlements that changed the ledger. What has no answer is unsure.
var (
	answerEvents = map[Code]string{
		Held: "held", ReplayHeld: "replay_held", ReplaySold: "replay_sold",
		SoldOut: "sold_out", NotOnSale: "not_on_sale", UserLimit: "user_limit",
		OtherOrder: "other_order", Released: "released_before", UnknownSKU: "unknown_sku",
		Refunded:   "refunded_before",
		Overloaded: "overloaded", Unsure: "unsure", Undecided: "undecided",
	}
	settleEvents = map[Op]string{Confirm: "confirmed", Release: "released", Refund: "refunded"}
)

// What a call to the store is for.
const (
	callReserve = "reserve"
	callFinish  = "finish"
	callSweep   = "sweep"
	callFind    = "find"
	callAudit   = "audit"
	callLookup  = "lookup"
)

// otherSKUs is the label of all SKUs that are not named.
const otherSKUs = "_other"

// metrics are what the reserver counts. Only orders that were passed on to the store are counted: a rejection from
// memory writes nothing, and is counted by the proxy.
type metrics struct {
	named atomic.Pointer[map[string]bool] // SKUs that are labels
	all   []prometheus.Collector

	orders         *prometheus.CounterVec   // by SKU and event
	contradictions *prometheus.CounterVec   // by SKU
	unknown        *prometheus.GaugeVec     // by SKU
	calls          *prometheus.HistogramVec // by operation
	resolutions    *prometheus.CounterVec   // by outcome
	mirrorWrites   *prometheus.CounterVec   // by result
	lost           prometheus.Counter
	unreplicated   prometheus.Counter
	retries        prometheus.Counter
	dropped        prometheus.Counter
	backlogged     prometheus.Gauge

	fewReplicas atomic.Bool // the last batch that reserved units was one that too few replicas had
}

// open makes the metrics, without a named SKU.
func (m *metrics) open() {
	m.orders = m.counters("sluice_reservations_total",
		"What happened to orders that were passed on to the ledger; SKUs that are not named are _other.", "sku", "event")
	m.contradictions = m.counters("sluice_settle_contradictions_total",
		"Settlements that the ledger contradicted: see the log.", "sku")
	m.unknown = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sluice_reservations_unknown", Help: "Holds that this instance asks the shop about."}, []string{"sku"})
	m.named.Store(&map[string]bool{})
	m.name([]string{otherSKUs})
	m.calls = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "sluice_ledger_call_orders",
		Help:    "Orders in one call to the ledger, a repeated call counted again; SKUs in one that sweeps or audits.",
		Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256},

		NativeHistogramBucketFactor: 1.19, NativeHistogramMaxBucketNumber: 100,
	}, []string{"operation"})
	for _, call := range []string{callReserve, callFinish, callSweep, callFind, callAudit, callLookup} {
		m.calls.WithLabelValues(call)
	}
	m.resolutions = m.counters("sluice_resolver_outcomes_total",
		"Attempts to find out what became of a hold, by how they ended.", "outcome")
	for _, r := range []resolution{foundOrder, foundNone, foundOrphan, unfenced, undecided, askFailed, gone} {
		m.resolutions.WithLabelValues(string(r))
	}
	m.mirrorWrites = m.counters("sluice_ledger_mirror_writes_total",
		"Writes of what is free to the shop's own keys; older ones came after a later version.", "result")
	for _, result := range []string{mirrorWritten, mirrorOlder, mirrorFailed} {
		m.mirrorWrites.WithLabelValues(result)
	}
	m.retries = m.counter("sluice_settle_retries_total", "Calls to settle that must be repeated.")
	m.dropped = m.counter("sluice_settle_spilled_total", "Settlements that are in the log alone: do them by hand.")
	m.backlogged = prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_ledger_streams_behind",
		Help: "SKUs with more changes than `events` that no reader has acknowledged."})
	m.unreplicated = m.counter("sluice_ledger_unreplicated_total",
		"Calls whose new holds too few replicas had in time: they are given back.")
	m.lost = m.counter("sluice_ledger_lost_total", "Replies that showed that a ledger had lost its history.")
	m.all = append(m.all, m.unknown, m.calls, m.backlogged)
}

// name has metrics tell of each of skus by itself from now on, with a value for each label that there can be.
func (m *metrics) name(skus []string) {
	named := maps.Clone(*m.named.Load())
	for _, sku := range skus {
		for _, event := range answerEvents {
			m.orders.WithLabelValues(sku, event)
		}
		for _, event := range settleEvents {
			m.orders.WithLabelValues(sku, event)
		}
		m.contradictions.WithLabelValues(sku)
		m.unknown.WithLabelValues(sku)
		named[sku] = true
	}
	m.named.Store(&named)
}

// label is that of a SKU.
func (m *metrics) label(sku string) string {
	if (*m.named.Load())[sku] {
		return sku
	}
	return otherSKUs
}

func (m *metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.all = append(m.all, c)
	return c
}

func (m *metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.all = append(m.all, c)
	return c
}

// countAnswer counts n orders of q with the same answer.
func (m *metrics) countAnswer(q *skuQueue, c Code, n int) {
	m.orders.WithLabelValues(m.label(q.sku), cmp.Or(answerEvents[c], answerEvents[Unsure])).Add(float64(n))
}

// countSettled counts one settlement of q that changed the ledger.
func (m *metrics) countSettled(q *skuQueue, op Op) {
	m.orders.WithLabelValues(m.label(q.sku), settleEvents[op]).Inc()
}

// countCall counts a call of n orders, or of as many SKUs that are swept or audited.
func (m *metrics) countCall(call string, n int) { m.calls.WithLabelValues(call).Observe(float64(n)) }

// Describe implements prometheus.Collector.
func (r *Reserver) Describe(ch chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(r, ch)
	for _, desc := range numberDescs() {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (r *Reserver) Collect(ch chan<- prometheus.Metric) {
	for _, c := range r.metrics.all {
		c.Collect(ch)
	}
	ch <- prometheus.MustNewConstMetric(prometheus.NewDesc("sluice_settle_queue_length",
		"Settlements that the ledger does not have yet.", nil, nil), prometheus.GaugeValue, float64(len(r.capacity)))
	r.upkeep.audits.Collect(ch)
	r.upkeep.reconciler.Collect(ch)
}
