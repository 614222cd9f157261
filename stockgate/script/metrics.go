package script

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what became of orders and units. Only orders that were sent to Redis are counted, a batch at a time: a
// rejection from memory writes nothing, and is counted by the proxy.
type counts struct {
	orders     [outcomes]atomic.Uint64
	unanswered atomic.Uint64 // units of orders with an unknown outcome
	open       atomic.Uint64 // units of orders whose response left their outcome unknown
	back       atomic.Uint64 // units given back
	notBack    atomic.Uint64 // units that the script did not give back
	lost       atomic.Uint64 // units whose giving back was not done, or not answered
}

// Describe implements prometheus.Collector.
func (r *Reserver) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(r, ch) }

// Collect implements prometheus.Collector.
func (r *Reserver) Collect(ch chan<- prometheus.Metric) {
	orders := prometheus.NewDesc("sluice_script_orders_total",
		"Orders that were passed on to the shop's own script, by what it said.", []string{"script", "outcome"}, nil)
	for o := range r.counts.orders {
		n := float64(r.counts.orders[o].Load())
		ch <- prometheus.MustNewConstMetric(orders, prometheus.CounterValue, n, r.script.name, outcome(o).String())
	}
	units := prometheus.NewDesc("sluice_script_units_total",
		"Units by what became of them: given_back, not_given_back (the script found nothing to give back), and what may be "+
			"neither sold nor for sale: unanswered (Redis' answer to taking was lost), open (the upstream's response "+
			"tells nothing), lost (they could not be given back).", []string{"script", "event"}, nil)
	for event, n := range map[string]*atomic.Uint64{
		"given_back": &r.counts.back, "not_given_back": &r.counts.notBack,
		"unanswered": &r.counts.unanswered, "open": &r.counts.open, "lost": &r.counts.lost,
	} {
		ch <- prometheus.MustNewConstMetric(units, prometheus.CounterValue, float64(n.Load()), r.script.name, event)
	}
	r.mu.Lock()
	waiting, underWay := len(r.queue), len(r.underWay)
	r.mu.Unlock()
	gauge := func(name, help string, n int) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, float64(n))
	}
	gauge("sluice_script_queue_length", "Orders that wait for the batch in flight.", waiting)
	gauge("sluice_script_under_way", "Orders that wait, or whose units are taken and whose outcome is not known yet.",
		underWay)
}
