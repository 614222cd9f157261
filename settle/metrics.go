package settle

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what a settler has done since it was made, and how far it is behind.
type counts struct {
	orders, entries, batches, rebuilds, frozen, lostOrders, givebacks atomic.Int64

	repairs     atomic.Int64
	differences atomic.Int64 // orders that differ and were not repaired
	unverified  atomic.Int64 // SKUs that moved in the last pass whenever they were looked at
	verified    atomic.Int64 // Unix ns, when every SKU that had moved was verified

	unlisted    atomic.Int64 // SKUs beyond those that are settled
	behind      atomic.Int64 // changes that wait
	behindSince atomic.Int64 // Unix ns since when a change has waited without end; 0 = none waits
	lastLag     atomic.Int64 // ns, of the last transaction
	failing     atomic.Pointer[string]
	lag         prometheus.Histogram
}

func newLag(target string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:        "sluice_settler_lag_seconds",
		Help:        "From a change of a ledger to the commit that settled it: the oldest change of each transaction.",
		ConstLabels: prometheus.Labels{"target": target},
		Buckets:     []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600},

		NativeHistogramBucketFactor: 1.19, NativeHistogramMaxBucketNumber: 100,
	})
}

// Stats are the counts of a settler since it was made.
type Stats struct {
	Orders, Entries, Batches, Rebuilds, Frozen, LostOrders, Givebacks int64
	Repairs                                                           int64 // SKUs that differed
	Behind                                                            int64 // changes that wait now

	BehindFor time.Duration // since when changes have waited without end
	Lag       time.Duration // of the oldest change of the last transaction
}

// Stats may be called at any time.
func (s *Settler) Stats() Stats {
	c := &s.counts
	return Stats{
		Orders: c.orders.Load(), Entries: c.entries.Load(), Batches: c.batches.Load(), Rebuilds: c.rebuilds.Load(),
		Frozen: c.frozen.Load(), LostOrders: c.lostOrders.Load(),
		Givebacks: c.givebacks.Load(), Behind: c.behind.Load(), BehindFor: s.behindFor(),
		Lag: time.Duration(c.lastLag.Load()), Repairs: c.repairs.Load(),
	}
}

func (s *Settler) behindFor() time.Duration {
	since := s.counts.behindSince.Load()
	if since == 0 {
		return 0
	}
	return max(s.now().Sub(time.Unix(0, since)), 0)
}

// Failing says of which SKUs changes stay in Redis by a fault, and by which; "" = of none.
func (s *Settler) Failing() string {
	if text := s.counts.failing.Load(); text != nil {
		return *text
	}
	return ""
}

// Describe implements prometheus.Collector.
func (s *Settler) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector.
func (s *Settler) Collect(ch chan<- prometheus.Metric) {
	target := prometheus.Labels{"target": s.o.Target} // constant: each target is a collector of its own
	number := func(kind prometheus.ValueType, v float64, name, help string) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, target), kind, v)
	}
	count := func(n int64, name, help string) { number(prometheus.CounterValue, float64(n), name, help) }
	done := s.Stats()
	count(done.Entries, "sluice_settler_entries_total", "Changes of ledgers that were settled.")
	count(done.Orders, "sluice_settler_orders_total", "Rows of orders that were written.")
	count(done.Batches, "sluice_settler_transactions_total", "Transactions that were committed.")
	count(done.Rebuilds, "sluice_settler_rebuilds_total", "Ledgers that were read whole, since changes were missing.")
	count(done.Frozen, "sluice_settler_frozen_total", "Ledgers that were frozen, since Redis had lost settled orders.")
	count(done.LostOrders, "sluice_settler_lost_orders_total",
		"Sold, held or refunded orders that Redis had lost and was told again.")
	count(done.Givebacks, "sluice_settler_givebacks_total", "Orders that the shop gave back by the database.")
	number(prometheus.GaugeValue, float64(done.Behind), "sluice_settler_behind_entries", "Changes that wait in Redis.")
	number(prometheus.GaugeValue, float64(s.counts.unlisted.Load()), "sluice_settler_unsettled_skus",
		"SKUs beyond the first 100,000 by name: they are not settled.")
	number(prometheus.GaugeValue, done.BehindFor.Seconds(), "sluice_settler_behind_seconds",
		"Since when changes of a SKU have waited, of the SKU that has waited longest; also of SKUs that are not settled.")
	s.counts.lag.Collect(ch)
	if s.o.Verify == 0 {
		return
	}
	count(s.counts.repairs.Load(), "sluice_settler_repairs_total",
		"SKUs whose ledger and database differed at one position, and were repaired.")
	number(prometheus.GaugeValue, float64(s.counts.differences.Load()), "sluice_settler_differing_orders",
		"Orders that ledger and database knew differently when they were verified last, and that were not repaired.")
	number(prometheus.GaugeValue, float64(s.counts.unverified.Load()), "sluice_settler_unverified_skus",
		"SKUs that could not be verified in the last settle.verify, since they changed all the time or by a fault.")
	number(prometheus.GaugeValue, float64(s.counts.verified.Load())/1e9, "sluice_settler_verified_timestamp_seconds",
		"Unix time at which every SKU that had moved was verified; 0: not yet.")
}

// measure notes how many changes of the SKU wait, and since when. If another settler works on it, that one tells.
func (p *skuCursor) measure(now time.Time, elsewhere, failed bool) {
	switch {
	case elsewhere:
		p.behind = 0
	case p.loaded && p.cursor != nil && p.ledger.continuing(p.cursor).Born == p.cursor.Born:
		p.behind = max(p.ledger.Ver-p.cursor.Ver, 0)
		if p.ledger.Born == 0 && p.ledger.Epoch > p.cursor.Epoch { // made again, in which versions began again
			p.behind = max(p.behind, 1)
		}
	case p.loaded:
		p.behind = p.ledger.Ver
	}
	switch {
	case p.behind == 0 && !failed:
		p.behindSince = time.Time{}
	case p.behindSince.IsZero():
		p.behindSince = now
	}
}

// sumUp publishes how much waits of all SKUs.
func (s *Settler) sumUp(places map[string]*skuCursor) {
	var behind, since int64
	if !s.unlistedSince.IsZero() {
		since = s.unlistedSince.UnixNano()
	}
	failing, first := 0, (*skuCursor)(nil)
	for _, p := range places {
		behind += p.behind
		if at := p.behindSince; !at.IsZero() && (since == 0 || at.UnixNano() < since) {
			since = at.UnixNano()
		}
		if p.trouble == "" {
			continue
		}
		if failing++; first == nil || p.sku < first.sku {
			first = p
		}
	}
	s.counts.behind.Store(behind)
	s.counts.behindSince.Store(since)
	text := s.listTrouble
	if failing > 0 {
		text = fmt.Sprintf("changes of %q stay in Redis: %s", first.sku, first.trouble)
	}
	if failing > 1 {
		text += fmt.Sprintf("; and those of %d more SKUs", failing-1)
	}
	s.counts.failing.Store(&text)
}
