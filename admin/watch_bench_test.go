package admin

import (
	"strconv"
	"testing"
)

// What a second of looking costs, with a shop of 50 routes and 100 SKUs.
func BenchmarkLook(b *testing.B) {
	c := metrics()
	for i := range 50 {
		for _, reason := range []string{"window", "sold_out", "concurrency", "rate", "conn_rate", "queue_timeout", "stock_error", "ended", "paused", "not_started"} {
			c.refused.WithLabelValues("route-"+strconv.Itoa(i), reason).Add(1)
		}
		c.requests.WithLabelValues("route-"+strconv.Itoa(i), "200").Add(1)
	}
	for i := range 100 {
		c.sold.WithLabelValues("sku-" + strconv.Itoa(i)).Set(float64(i))
	}
	w := &Watch{metrics: c.registry, news: make(chan struct{}), skus: map[string]*moments{}}
	w.now = w.read()
	at := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		at++
		w.look(at, 1)
	}
}
