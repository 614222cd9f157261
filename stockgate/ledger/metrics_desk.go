package ledger

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/histogram"
)

// event is a place in the books: what happened to an order.
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
	eventConfirmed
	eventReleased
	eventRefunded
	eventAdopted
	numEvents
)

func (e event) String() string {
	return [...]string{"held", "replay_held", "replay_sold", "sold_out", "not_on_sale", "user_limit", "other_order",
		"released_before", "unknown_sku", "overloaded", "unsure", "confirmed", "released", "refunded", "adopted"}[e]
}

// events count what happened to the orders of one named SKU, or of all others. Only orders that were passed on to
// the store are counted, a batch at a time: a refusal from memory writes nothing, and is counted by the proxy.
type events struct {
	counts  [numEvents]atomic.Uint64
	unknown atomic.Int64  // holds that this instance asks the shop about
	trouble atomic.Uint64 // settlements that the ledger contradicted
}

// count counts n orders with the same answer.
func (e *events) count(c Code, n int) {
	e.counts[eventOf(c)].Add(uint64(n))
}

func eventOf(c Code) event {
	switch c {
	case Held:
		return eventHeld
	case ReplayHeld:
		return eventReplayHeld
	case ReplaySold:
		return eventReplaySold
	case SoldOut:
		return eventSoldOut
	case NotOnSale:
		return eventNotOnSale
	case UserLimit:
		return eventUserLimit
	case OtherOrder:
		return eventOtherOrder
	case Released:
		return eventReleasedBefore
	case UnknownSKU:
		return eventUnknownSKU
	case Overloaded, StaleEpoch:
		return eventOverloaded
	}
	return eventUnsure
}

// finish counts one settlement that changed the ledger.
func (e *events) finish(op Op) {
	switch op {
	case Confirm:
		e.counts[eventConfirmed].Add(1)
	case Release:
		e.counts[eventReleased].Add(1)
	case Refund:
		e.counts[eventRefunded].Add(1)
	case Adopt:
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
	callRecords
	callAudit
	callGlance
	numCalls
)

func (c call) String() string {
	return [...]string{"reserve", "finish", "sweep", "find", "records", "audit", "glance"}[c]
}

// callScale is of a call's size, in orders.
var callScale = histogram.Sizes(1, 2, 4, 8, 16, 32, 64, 128, 256)

// callMetrics count calls by their size.
type callMetrics struct {
	sizes [numCalls]histogram.Histogram
}

// note counts a call of n orders, or of as many SKUs that are looked after, at most 256.
func (m *callMetrics) note(c call, n int) { m.sizes[c].Observe(callScale, float64(n)) }

func (m *callMetrics) metric(desc *prometheus.Desc, c call) prometheus.Metric {
	return callScale.Metric(desc, []*histogram.Histogram{&m.sizes[c]}, c.String())
}

// Describe implements prometheus.Collector.
func (d *Desk) Describe(ch chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(d, ch)
	for _, desc := range stockDescs {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (d *Desk) Collect(ch chan<- prometheus.Metric) {
	d.collectBooks(ch)
	d.collectStock(ch)
	d.audits.collect(ch)
	d.shown.collect(ch)
	d.reopenings.collect(ch)
	size := prometheus.NewDesc("sluice_ledger_call_orders", "Orders in one call to the ledger, a repeated call counted again; SKUs in one that sweeps, audits or only looks whether they are still closed.", []string{"operation"}, nil)
	for c := range numCalls {
		ch <- d.calls.metric(size, c)
	}
	resolved := prometheus.NewDesc("sluice_resolver_outcomes_total", "Attempts to find out what became of a hold, by how they ended.", []string{"outcome"}, nil)
	for r := range numResolutions {
		ch <- prometheus.MustNewConstMetric(resolved, prometheus.CounterValue, float64(d.verdicts[r].Load()), r.String())
	}
	number := func(kind prometheus.ValueType, v float64, name, help string) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), kind, v)
	}
	number(prometheus.GaugeValue, float64(d.winners.Load()), "sluice_ledger_winners", "Orders of closed SKUs that are kept to tell who has won; at most max_winners.")
	number(prometheus.GaugeValue, float64(len(d.room)), "sluice_settle_queue_length", "Settlements that the ledger does not have yet.")
	number(prometheus.CounterValue, float64(d.retries.Load()), "sluice_settle_retries_total", "Calls to settle that must be repeated.")
	number(prometheus.CounterValue, float64(d.spilled.Load()), "sluice_settle_spilled_total", "Settlements that are in the log alone: do them by hand.")
	number(prometheus.GaugeValue, float64(d.behind.Load()), "sluice_ledger_streams_behind", "SKUs with more changes than events that nobody has acknowledged.")
	number(prometheus.CounterValue, float64(d.thin.Load()), "sluice_ledger_unreplicated_total", "Calls whose new holds too few replicas had in time: they are given back.")
	number(prometheus.CounterValue, float64(d.lost.Load()), "sluice_ledger_lost_total", "Replies that showed that a ledger had lost its history.")
}

func (d *Desk) collectBooks(ch chan<- prometheus.Metric) {
	orders := prometheus.NewDesc("sluice_reservations_total",
		"What happened to orders that were passed on to the ledger; SKUs that are not named are _other.", []string{"sku", "event"}, nil)
	trouble := prometheus.NewDesc("sluice_settle_contradictions_total", "Settlements that the ledger contradicted: see the log.", []string{"sku"}, nil)
	unknown := prometheus.NewDesc("sluice_reservations_unknown", "Holds that this instance asks the shop about.", []string{"sku"}, nil)
	for sku, book := range d.books {
		if sku == "" {
			sku = "_other"
		}
		for e := range numEvents {
			ch <- prometheus.MustNewConstMetric(orders, prometheus.CounterValue, float64(book.counts[e].Load()), sku, e.String())
		}
		ch <- prometheus.MustNewConstMetric(unknown, prometheus.GaugeValue, float64(book.unknown.Load()), sku)
		ch <- prometheus.MustNewConstMetric(trouble, prometheus.CounterValue, float64(book.trouble.Load()), sku)
	}
}
