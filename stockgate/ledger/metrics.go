package ledger

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"sluice/stockgate/ledger/audit"
	"sluice/stockgate/ledger/protocol"
)

// event is what happened to an order.
type event int

const (
	eventHeld event = iota
	eventReplayHeld
	eventReplaySold
	eventSoldOut
	eventNotOnSale
	eventUserLimit
	eventOtherOrder
	eventReleasedBefore
	eventUnknownSKU
	eventOverloaded
	eventUnsure
	eventUndecided
	eventConfirmed
	eventReleased
	eventRefunded
	eventAdopted
	numEvents
)

func (e event) String() string {
	return [...]string{"held", "replay_held", "replay_sold", "sold_out", "not_on_sale", "user_limit", "other_order",
		"released_before", "unknown_sku", "overloaded", "unsure", "undecided",
		"confirmed", "released", "refunded", "adopted"}[e]
}

// events count what happened to the orders of one named SKU, or of all others. Only orders that were passed on to
// the store are counted, a batch at a time: a rejection from memory writes nothing, and is counted by the proxy.
type events struct {
	counts         [numEvents]atomic.Uint64
	unknown        atomic.Int64  // holds that this instance asks the shop about
	contradictions atomic.Uint64 // settlements that the ledger contradicted
}

// count counts n orders with the same answer.
func (e *events) count(c protocol.Code, n int) {
	e.counts[eventOf(c)].Add(uint64(n))
}

func eventOf(c protocol.Code) event {
	switch c {
	case protocol.Held:
		return eventHeld
	case protocol.ReplayHeld:
		return eventReplayHeld
	case protocol.ReplaySold:
		return eventReplaySold
	case protocol.SoldOut:
		return eventSoldOut
	case protocol.NotOnSale:
		return eventNotOnSale
	case protocol.UserLimit:
		return eventUserLimit
	case protocol.OtherOrder:
		return eventOtherOrder
	case protocol.Released:
		return eventReleasedBefore
	case protocol.UnknownSKU:
		return eventUnknownSKU
	case Overloaded, protocol.StaleEpoch:
		return eventOverloaded
	case Undecided:
		return eventUndecided
	}
	return eventUnsure
}

// countSettled counts one settlement that changed the ledger.
func (e *events) countSettled(op protocol.Op) {
	switch op {
	case protocol.Confirm:
		e.counts[eventConfirmed].Add(1)
	case protocol.Release:
		e.counts[eventReleased].Add(1)
	case protocol.Refund:
		e.counts[eventRefunded].Add(1)
	case protocol.Adopt:
		e.counts[eventAdopted].Add(1)
	}
}

// call is what a call to the store is for.
type call int

const (
	callReserve call = iota
	callFinish
	callSweep
	callFind
	callAudit
	callLookup
	numCalls
)

func (c call) String() string {
	return [...]string{"reserve", "finish", "sweep", "find", "audit", "lookup"}[c]
}

// callMetrics count calls by their size.
type callMetrics struct{ sizes *prometheus.HistogramVec }

func newCallMetrics() callMetrics {
	sizes := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "sluice_ledger_call_orders",
		Help:    "Orders in one call to the ledger, a repeated call counted again; SKUs in one that sweeps or audits.",
		Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256},

		NativeHistogramBucketFactor: 1.19, NativeHistogramMaxBucketNumber: 100,
	}, []string{"operation"})
	for c := range numCalls {
		sizes.WithLabelValues(c.String())
	}
	return callMetrics{sizes}
}

// observe counts a call of n orders, or of as many SKUs that are swept or audited.
func (m *callMetrics) observe(c call, n int) { m.sizes.WithLabelValues(c.String()).Observe(float64(n)) }

// metrics are what the reserver counts.
type metrics struct {
	events       map[string]*events // by named SKU; "" = all others
	calls        callMetrics
	lost         atomic.Uint64
	unreplicated atomic.Uint64 // batches that too few replicas had
	fewReplicas  atomic.Bool   // the last one was such
	retries      atomic.Uint64
	dropped      atomic.Uint64
	unknown      atomic.Int64
	backlogged   atomic.Int64 // SKUs whose changes are not acknowledged
	resolutions  [numResolutions]atomic.Uint64
	mirrorWrites mirrorCounts
}

func (m *metrics) open(named []string) {
	m.calls = newCallMetrics()
	m.events = map[string]*events{"": {}}
	for _, sku := range named {
		m.events[sku] = &events{}
	}
}

// eventsOf are those of sku.
func (m *metrics) eventsOf(sku string) *events {
	if e := m.events[sku]; e != nil {
		return e
	}
	return m.events[""]
}

// Describe implements prometheus.Collector.
func (r *Reserver) Describe(ch chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(r, ch)
	for _, desc := range audit.NumberDescs() {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (r *Reserver) Collect(ch chan<- prometheus.Metric) {
	r.collectEvents(ch)
	r.audits.Collect(ch)
	r.mirrorWrites.collect(ch)
	r.upkeep.reconciler.Collect(ch)
	r.calls.sizes.Collect(ch)
	resolved := prometheus.NewDesc("sluice_resolver_outcomes_total",
		"Attempts to find out what became of a hold, by how they ended.", []string{"outcome"}, nil)
	for i := range numResolutions {
		ch <- prometheus.MustNewConstMetric(resolved, prometheus.CounterValue, float64(r.resolutions[i].Load()), i.String())
	}
	number := func(kind prometheus.ValueType, v float64, name, help string) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), kind, v)
	}
	number(prometheus.GaugeValue, float64(len(r.capacity)), "sluice_settle_queue_length",
		"Settlements that the ledger does not have yet.")
	number(prometheus.CounterValue, float64(r.retries.Load()), "sluice_settle_retries_total",
		"Calls to settle that must be repeated.")
	number(prometheus.CounterValue, float64(r.dropped.Load()), "sluice_settle_spilled_total",
		"Settlements that are in the log alone: do them by hand.")
	number(
		prometheus.GaugeValue,
		float64(r.backlogged.Load()),
		"sluice_ledger_streams_behind",
		"SKUs with more changes than `events` that no reader has acknowledged.",
	)
	number(prometheus.CounterValue, float64(r.unreplicated.Load()), "sluice_ledger_unreplicated_total",
		"Calls whose new holds too few replicas had in time: they are given back.")
	number(prometheus.CounterValue, float64(r.lost.Load()), "sluice_ledger_lost_total",
		"Replies that showed that a ledger had lost its history.")
}

func (r *Reserver) collectEvents(ch chan<- prometheus.Metric) {
	orders := prometheus.NewDesc("sluice_reservations_total",
		"What happened to orders that were passed on to the ledger; SKUs that are not named are _other.",
		[]string{"sku", "event"}, nil)
	contradictions := prometheus.NewDesc("sluice_settle_contradictions_total",
		"Settlements that the ledger contradicted: see the log.", []string{"sku"}, nil)
	unknown := prometheus.NewDesc("sluice_reservations_unknown", "Holds that this instance asks the shop about.",
		[]string{"sku"}, nil)
	for sku, e := range r.events {
		if sku == "" {
			sku = "_other"
		}
		for i := range numEvents {
			ch <- prometheus.MustNewConstMetric(orders, prometheus.CounterValue, float64(e.counts[i].Load()), sku, i.String())
		}
		ch <- prometheus.MustNewConstMetric(unknown, prometheus.GaugeValue, float64(e.unknown.Load()), sku)
		ch <- prometheus.MustNewConstMetric(contradictions, prometheus.CounterValue, float64(e.contradictions.Load()), sku)
	}
}
