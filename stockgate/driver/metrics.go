package driver

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what became of orders and units. Only orders that were passed on to Redis are counted, a batch at a time:
// a refusal from memory writes nothing, and is counted by the proxy.
type counts struct {
	orders  [tooLate + 1]atomic.Uint64
	unsure  atomic.Uint64 // units whose taking was not answered
	kept    atomic.Uint64 // units of orders that the shop's answer left open
	back    atomic.Uint64 // units given back
	refused atomic.Uint64 // units that the driver would not take back
	lost    atomic.Uint64 // units whose giving back was not done, or not answered
}

// note counts one order.
func (c *counts) note(w why, units int64) {
	c.orders[w].Add(1)
	if w == unsure {
		c.unsure.Add(uint64(units))
	}
}

func (w why) String() string {
	return [...]string{"unsure", "taken", "sold_out", "unknown_sku", "not_on_sale", "repeated", "given_back_before", "contended", "faulty", "not_sent", "too_late"}[w]
}

// Describe implements prometheus.Collector.
func (d *Desk) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(d, ch) }

// Collect implements prometheus.Collector.
func (d *Desk) Collect(ch chan<- prometheus.Metric) {
	orders := prometheus.NewDesc("sluice_driver_orders_total", "Orders that were passed on to the shop's own script, by what it said.", []string{"driver", "outcome"}, nil)
	for w := range d.counts.orders {
		ch <- prometheus.MustNewConstMetric(orders, prometheus.CounterValue, float64(d.counts.orders[w].Load()), d.promise.Driver, why(w).String())
	}
	units := prometheus.NewDesc("sluice_driver_units_total",
		"Units by what became of them: given_back, refused_back (the script would not take them back), and what may be neither sold nor for sale: "+
			"unanswered (Redis' answer to taking was lost), open (the shop's answer tells nothing), lost (they could not be given back).", []string{"driver", "event"}, nil)
	for event, n := range map[string]*atomic.Uint64{
		"given_back": &d.counts.back, "refused_back": &d.counts.refused,
		"unanswered": &d.counts.unsure, "open": &d.counts.kept, "lost": &d.counts.lost,
	} {
		ch <- prometheus.MustNewConstMetric(units, prometheus.CounterValue, float64(n.Load()), d.promise.Driver, event)
	}
	d.mu.Lock()
	waiting, held := len(d.queue), len(d.held)
	d.mu.Unlock()
	gauge := func(name, help string, n int) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, float64(n))
	}
	gauge("sluice_driver_queue_length", "Orders that wait for the batch under way.", waiting)
	gauge("sluice_driver_under_way", "Orders whose units are taken and whose end is not known yet.", held)
}
