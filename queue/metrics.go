package queue

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	ordersDesc = prometheus.NewDesc("sluice_delivery_orders",
		"Orders of the queue by state, over all instances: queued, delivering, unknown, stuck.", []string{"state"}, nil)
	attemptsDesc = prometheus.NewDesc("sluice_delivery_attempts_total",
		"Attempts by this instance to deliver an order, by outcome.", []string{"outcome"}, nil)
	expiredDesc = prometheus.NewDesc("sluice_delivery_expired_total",
		"Orders that this instance released since they had waited for queue.deliver_within.", nil, nil)
	stuckDesc = prometheus.NewDesc("sluice_delivery_stuck_total",
		"Orders that this instance gave up: a person must decide about each.", nil, nil)
	callsDesc = prometheus.NewDesc("sluice_delivery_calls_total",
		"Calls of the store for orders of the queue, by kind; many orders share a call.", []string{"call"}, nil)
	limitDesc = prometheus.NewDesc("sluice_delivery_limit",
		"Orders that this instance lets the upstream have at once now, at most queue.max_in_flight.", nil, nil)
)

// callKind is what is counted of a call of the store.
type callKind int

const (
	callSlots  callKind = iota // places in the upstream are taken and given back
	callTake                   // orders are handed out
	callDecide                 // orders are decided
	callPlaces                 // orders are looked up
	numCallKinds
)

func (k callKind) String() string {
	return [numCallKinds]string{"slots", "hand_out", "decide", "positions"}[k]
}

// Describe implements prometheus.Collector.
func (d *Deliverer) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{ordersDesc, attemptsDesc, expiredDesc, stuckDesc, callsDesc, limitDesc} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (d *Deliverer) Collect(ch chan<- prometheus.Metric) {
	sum := d.lines.total()
	for state, n := range map[string]int64{"queued": sum.Waiting, "delivering": sum.Leased,
		"unknown": max(sum.Asking-sum.Stuck, 0), "stuck": sum.Stuck} {
		ch <- prometheus.MustNewConstMetric(ordersDesc, prometheus.GaugeValue, float64(n), state)
	}
	for kind := range numAttemptKinds {
		ch <- prometheus.MustNewConstMetric(attemptsDesc, prometheus.CounterValue, float64(d.counts[kind].Load()),
			kind.String())
	}
	ch <- prometheus.MustNewConstMetric(expiredDesc, prometheus.CounterValue, float64(d.expire.Load()))
	ch <- prometheus.MustNewConstMetric(stuckDesc, prometheus.CounterValue, float64(d.alarms.Load()))
	for kind := range numCallKinds {
		ch <- prometheus.MustNewConstMetric(callsDesc, prometheus.CounterValue, float64(d.calls[kind].Load()), kind.String())
	}
	ch <- prometheus.MustNewConstMetric(limitDesc, prometheus.GaugeValue, float64(d.pace.now(time.Now())))
}
