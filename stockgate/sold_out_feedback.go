package stockgate

import (
	"hash/maphash"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// lessonSlots is how many SKUs are remembered. Each has one slot; where another SKU has it, nothing is known.
const lessonSlots = 1 << 16

// SoldOutFeedback remembers for a while of which SKUs the shop itself has said that they are sold out. It is safe for
// concurrent use; asking it neither allocates, waits nor writes. No number of SKUs grows its memory.
type SoldOutFeedback struct {
	memory atomic.Int64 // ns
	seed   maphash.Seed
	slots  []atomic.Pointer[lesson]
	log    *slog.Logger

	said   atomic.Uint64 // answers that said so
	forced atomic.Uint64 // of orders for which units were held
	warned atomic.Bool
}

// lesson is immutable.
type lesson struct {
	sku string
	at  int64 // ns
}

// NewSoldOutFeedback remembers each for memory.
func NewSoldOutFeedback(memory time.Duration, log *slog.Logger) *SoldOutFeedback {
	if log == nil {
		log = slog.Default()
	}
	l := &SoldOutFeedback{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[lesson], lessonSlots), log: log}
	l.Use(memory)
	return l
}

// Use remembers each for memory from now on, those of before as well.
func (l *SoldOutFeedback) Use(memory time.Duration) { l.memory.Store(int64(memory)) }

// SoldOut tells whether the shop has said so less than memory before now.
func (l *SoldOutFeedback) SoldOut(now int64, sku []byte) bool {
	last := l.slot(sku).Load()
	return last != nil && last.sku == string(sku) && now-last.at < l.memory.Load()
}

func (l *SoldOutFeedback) slot(sku []byte) *atomic.Pointer[lesson] {
	return &l.slots[maphash.Bytes(l.seed, sku)%lessonSlots]
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
	if len(sku) > longestSKU {
		return
	}
	slot, next := l.slot(sku), &lesson{string(sku), now}
	for {
		last := slot.Load()
		if last != nil && last.sku == next.sku && last.at >= now || slot.CompareAndSwap(last, next) {
			return
		}
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
