package script

import (
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what became of orders and units, by SKU. Only orders that were sent to Redis are counted, a batch at a
// time: a rejection from memory writes nothing, and is counted by the proxy.
type counts struct {
	orders, units *prometheus.CounterVec

	mu    sync.Mutex
	most  int             // SKUs that are counted by name
	named map[string]bool // those of sales, and the first others of which a unit was taken
}

// otherSKUs is what SKUs that are not counted by name are counted as.
const otherSKUs = "_other"

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

// newCounts are those of a script.
func newCounts(script string, named []string, most int) *counts {
	labels := prometheus.Labels{"script": script}
	c := &counts{most: most, named: map[string]bool{}, orders: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_script_orders_total", Help: "Orders that were passed on to the shop's own script, by what it said.",
		ConstLabels: labels,
	}, []string{"sku", "outcome"}), units: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_script_units_total", ConstLabels: labels,
		Help: "Units by what became of them: given_back, not_given_back (the script found nothing to give back), and what " +
			"may be neither sold nor for sale: unanswered (Redis' answer to taking was lost), open (the upstream's response " +
			"tells nothing), lost (whether they were given back is not known).",
	}, []string{"sku", "event"})}
	c.show(otherSKUs)
	for _, sku := range named[:min(len(named), most)] {
		c.named[sku] = true
		c.show(sku)
	}
	return c
}

// show shows a SKU of which nothing was counted yet.
func (c *counts) show(sku string) {
	for o := range outcomes {
		c.orders.WithLabelValues(sku, o.String())
	}
	for e := range unitEvents {
		c.units.WithLabelValues(sku, e.String())
	}
}

// label is what a SKU is counted as. One that exists gets a name, as long as there is room.
func (c *counts) label(sku string, exists bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.named[sku]:
		return sku
	case !exists || len(c.named) >= c.most || !utf8.ValidString(sku):
		return otherSKUs
	}
	c.named[sku] = true
	c.show(sku)
	return sku
}

func (c *counts) countOrder(o *order) {
	c.orders.WithLabelValues(c.label(o.sku, o.outcome == taken), o.outcome.String()).Inc()
}

func (c *counts) countUnits(o *order, e unitEvent) {
	c.units.WithLabelValues(c.label(o.sku, false), e.String()).Add(float64(o.quantity))
}

// Describe implements prometheus.Collector.
func (r *Reserver) Describe(ch chan<- *prometheus.Desc) {
	if r.keeper == nil { // the orders that are kept have other metrics from time to time
		prometheus.DescribeByCollect(r, ch)
	}
}

// Collect implements prometheus.Collector.
func (r *Reserver) Collect(ch chan<- prometheus.Metric) {
	r.counts.orders.Collect(ch)
	r.counts.units.Collect(ch)
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
