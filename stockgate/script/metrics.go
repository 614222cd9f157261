package script

import (
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what became of orders and units, by SKU. Only orders that were sent to Redis are counted, a batch at a
// time: a rejection from memory writes nothing, and is counted by the proxy.
type counts struct {
	mu    sync.Mutex
	most  int                   // SKUs that are counted by name
	named map[string]*skuCounts // those of sales, and the first others of which a unit was taken
	other skuCounts
}

// skuCounts are those of one SKU.
type skuCounts struct {
	orders [outcomes]uint64
	units  [unitEvents]uint64
}

// unitEvent is what became of units that were taken, or may have been.
type unitEvent int

const (
	unitsGivenBack    unitEvent = iota
	unitsNotGivenBack           // the script did not give them back
	unitsUnanswered             // of orders with an unknown outcome
	unitsOpen                   // of orders whose response left their outcome unknown
	unitsLost                   // their giving back was not done, or not answered
	unitEvents
)

func (e unitEvent) String() string {
	return [...]string{"given_back", "not_given_back", "unanswered", "open", "lost"}[e]
}

func (c *counts) open(named []string, most int) {
	c.most, c.named = most, map[string]*skuCounts{}
	for _, sku := range named[:min(len(named), most)] {
		c.named[sku] = &skuCounts{}
	}
}

// of returns the counts of a SKU. One that exists gets counts of its own, as long as there is room. mu is held.
func (c *counts) of(sku string, exists bool) *skuCounts {
	switch n := c.named[sku]; {
	case n != nil:
		return n
	case !exists || len(c.named) >= c.most || !utf8.ValidString(sku):
		return &c.other
	}
	n := &skuCounts{}
	c.named[sku] = n
	return n
}

func (c *counts) countOrder(o *order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(o.sku, o.outcome == taken).orders[o.outcome]++
}

func (c *counts) countUnits(o *order, e unitEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(o.sku, false).units[e] += uint64(o.quantity)
}

// Describe implements prometheus.Collector.
func (r *Reserver) Describe(ch chan<- *prometheus.Desc) {
	if r.keeper == nil { // the orders that are kept have other metrics from time to time
		prometheus.DescribeByCollect(r, ch)
	}
}

// Collect implements prometheus.Collector.
func (r *Reserver) Collect(ch chan<- prometheus.Metric) {
	r.counts.mu.Lock()
	for sku, n := range r.counts.named {
		r.collectSKU(ch, sku, n)
	}
	r.collectSKU(ch, "_other", &r.counts.other)
	r.counts.mu.Unlock()
	r.mu.Lock()
	waiting, underWay := len(r.queue), len(r.underWay)
	r.mu.Unlock()
	gauge := func(name, help string, n int) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, float64(n))
	}
	gauge("sluice_script_queue_length", "Orders that wait for the batch in flight.", waiting)
	gauge("sluice_script_under_way", "Orders that wait, or whose units are taken and whose outcome is not known yet.",
		underWay)
	if r.keeper != nil {
		r.keeper.collect(ch)
	}
}

// collectSKU shows the counts of one SKU.
func (r *Reserver) collectSKU(ch chan<- prometheus.Metric, sku string, n *skuCounts) {
	orders := prometheus.NewDesc("sluice_script_orders_total",
		"Orders that were passed on to the shop's own script, by what it said.", []string{"script", "sku", "outcome"}, nil)
	for o, count := range n.orders {
		ch <- prometheus.MustNewConstMetric(orders, prometheus.CounterValue, float64(count), r.script.name, sku,
			outcome(o).String())
	}
	units := prometheus.NewDesc("sluice_script_units_total",
		"Units by what became of them: given_back, not_given_back (the script found nothing to give back), and what may be "+
			"neither sold nor for sale: unanswered (Redis' answer to taking was lost), open (the upstream's response "+
			"tells nothing), lost (whether they were given back is not known).", []string{"script", "sku", "event"}, nil)
	for e, count := range n.units {
		ch <- prometheus.MustNewConstMetric(units, prometheus.CounterValue, float64(count), r.script.name, sku,
			unitEvent(e).String())
	}
}
