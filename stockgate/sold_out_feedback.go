package stockgate

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// SoldOutFeedback remembers for a while of which SKUs the shop itself has said that they are sold out. It is safe for
// concurrent use; asking it neither allocates, waits nor writes. It forgets all but the newest MaxSKUs at the most, so
// that no number of SKUs grows its memory.
type SoldOutFeedback struct {
	memory int64 // ns
	table  *table
	swept  atomic.Int64 // ns: when the table was last found full, and what is over thrown out
	sweeps sync.Mutex   // one at a time removes
	log    *slog.Logger

	said   atomic.Uint64 // answers that said so
	forced atomic.Uint64 // of orders for which units were held
	warned atomic.Bool
}

// NewSoldOutFeedback remembers each for memory, and at most so many SKUs at a time.
func NewSoldOutFeedback(memory time.Duration, most int, log *slog.Logger) *SoldOutFeedback {
	if log == nil {
		log = slog.Default()
	}
	return &SoldOutFeedback{memory: int64(memory), table: newTable(most), log: log}
}

// SoldOut tells whether the shop has said so less than memory before now.
func (l *SoldOutFeedback) SoldOut(now int64, sku []byte) bool {
	e := l.table.lookUp(sku)
	if e == nil {
		return false
	}
	v, at := e.reading()
	return v == soldOut && now-at < l.memory
}

// RecordSoldOut notes that the shop says so at now. reserved: of an order for which units were held, although the
// ledger had some: that is a shop whose own stock is another, and is told once.
func (l *SoldOutFeedback) RecordSoldOut(now int64, sku []byte, reserved bool) {
	l.said.Add(1)
	if reserved {
		l.forced.Add(1)
		if !l.warned.Swap(true) {
			l.log.Warn("the shop says sold out of an order for which the ledger had units: its own stock is another; orders "+
				"go there again after stock.sold_out_ttl", "sku", string(sku))
		}
		return
	}
	e := l.table.lookUp(sku)
	if e == nil && len(sku) <= longestSKU {
		if e = l.table.add(now, sku); e == nil {
			l.sweep(now)
			e = l.table.add(now, sku)
		}
	}
	if e != nil {
		e.publish(soldOut, 0, now)
	}
}

// sweep forgets what is over, at most once in the time that a lesson lasts.
func (l *SoldOutFeedback) sweep(now int64) {
	last := l.swept.Load()
	if last != 0 && now-last < l.memory || !l.sweeps.TryLock() {
		return
	}
	defer l.sweeps.Unlock()
	l.swept.Store(now)
	for part := range parts {
		l.table.walk(part, func(e *entry) {
			if _, at := e.reading(); now-at >= l.memory {
				l.table.remove(e)
			}
		})
	}
}

// Describe implements prometheus.Collector.
func (l *SoldOutFeedback) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(l, ch) }

// Collect implements prometheus.Collector.
func (l *SoldOutFeedback) Collect(ch chan<- prometheus.Metric) {
	said := prometheus.NewDesc("sluice_shop_sold_out_total",
		`Answers of the shop by which it said that a SKU is sold out: "held" of orders for which the ledger had units.`,
		[]string{"order"}, nil)
	forced := l.forced.Load()
	ch <- prometheus.MustNewConstMetric(said, prometheus.CounterValue, float64(forced), "held")
	ch <- prometheus.MustNewConstMetric(said, prometheus.CounterValue, float64(l.said.Load()-min(forced, l.said.Load())),
		"other")
}
