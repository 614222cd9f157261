package cache

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// result is how a page was answered.
type result uint8

const (
	hit result = iota
	stale
	collapsed // with what another's request brought
	missed
	revalidated
	passed // not out of the cache: it cannot be kept
	failed // the shop gave nothing
	numResults
)

func (r result) String() string {
	return [...]string{"hit", "stale", "collapsed", "miss", "revalidated", "bypass", "error"}[r]
}

// counts are padded, since every hit on every core adds to one of them.
type counts [numResults]struct {
	atomic.Uint64
	_ [56]byte
}

func (c *counts) add(r result) { c[r].Add(1) }

var (
	answeredHow = prometheus.NewDesc("sluice_cache_requests_total",
		"Requests of cached routes, by how they were answered.", []string{"result"}, nil)
	bytesKept = prometheus.NewDesc("sluice_cache_bytes",
		"Bodies, headers and keys that are kept, about.", nil, nil)
	entriesKept = prometheus.NewDesc("sluice_cache_entries",
		"Answers that are kept, and marks of what cannot be.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (c *Cache) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

// Collect implements [prometheus.Collector].
func (c *Cache) Collect(to chan<- prometheus.Metric) {
	for r := range numResults {
		to <- prometheus.MustNewConstMetric(answeredHow, prometheus.CounterValue, float64(c.counts[r].Load()), r.String())
	}
	to <- prometheus.MustNewConstMetric(bytesKept, prometheus.GaugeValue, float64(c.kept.WeightedSize()))
	to <- prometheus.MustNewConstMetric(entriesKept, prometheus.GaugeValue, float64(c.kept.EstimatedSize()))
}
