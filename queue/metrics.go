package queue

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/stockgate/ledger/protocol"
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
	limitDesc = prometheus.NewDesc("sluice_delivery_limit",
		"Orders that this instance lets the upstream have at once now, at most queue.max_in_flight.", nil, nil)
)

// Describe implements prometheus.Collector.
func (d *Deliverer) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{ordersDesc, attemptsDesc, expiredDesc, stuckDesc, limitDesc} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (d *Deliverer) Collect(ch chan<- prometheus.Metric) {
	s := d.Status()
	for state, n := range map[string]int64{"queued": s.Waiting, "delivering": s.Leased, "unknown": s.Asking - s.Stuck,
		"stuck": s.Stuck} {
		ch <- prometheus.MustNewConstMetric(ordersDesc, prometheus.GaugeValue, float64(n), state)
	}
	for outcome, n := range s.Attempts {
		ch <- prometheus.MustNewConstMetric(attemptsDesc, prometheus.CounterValue, float64(n), outcome)
	}
	ch <- prometheus.MustNewConstMetric(expiredDesc, prometheus.CounterValue, float64(s.Expired))
	ch <- prometheus.MustNewConstMetric(stuckDesc, prometheus.CounterValue, float64(s.GaveUp))
	ch <- prometheus.MustNewConstMetric(limitDesc, prometheus.GaugeValue, float64(s.Limit))
}

// Status is the queue as one instance sees it.
type Status struct {
	protocol.Depth                   // of all SKUs and instances; Delivered is not summed up
	Pace           float64           // orders a second that all instances hand out; 0 = not known
	Limit          int               // orders that this instance lets the upstream have at once now
	Attempts       map[string]uint64 // of this instance, by outcome
	Expired        uint64            // orders that this instance released unsent
	GaveUp         uint64            // orders that became stuck at this instance
}

// Status reads it from memory.
func (d *Deliverer) Status() Status {
	s := Status{Limit: d.pace.now(time.Now()), Attempts: make(map[string]uint64, numAttemptKinds),
		Expired: d.expire.Load(), GaveUp: d.alarms.Load()}
	s.Depth, s.Pace = d.lines.total()
	s.Asking = max(s.Asking, s.Stuck) // the two are read one after the other
	for kind := range numAttemptKinds {
		s.Attempts[kind.String()] = d.counts[kind].Load()
	}
	return s
}
