package admin

import (
	"fmt"
	"strconv"
	"testing"

	"sluice/proxy"
)

// What a second of looking costs, with many routes, all of them asked, and 100 SKUs.
func BenchmarkLook(b *testing.B) {
	for _, routes := range []int{50, 1000} {
		b.Run(fmt.Sprintf("routes=%d", routes), func(b *testing.B) {
			c := metrics()
			for i := range routes {
				c.answer("route-"+strconv.Itoa(i), 20, map[proxy.Reason]int64{proxy.Window: 1, proxy.SoldOut: 1, proxy.Concurrency: 1, proxy.Rate: 1, proxy.ConnRate: 1,
					proxy.QueueTimeout: 1, proxy.StockError: 1, proxy.Ended: 1, proxy.Paused: 1, proxy.NotStarted: 1})
			}
			for i := range 100 {
				c.sold.WithLabelValues("sku-" + strconv.Itoa(i)).Set(float64(i))
			}
			w := &Watch{traffic: c.traffic, metrics: c.registry, news: make(chan struct{}), skus: map[string]*moments{}}
			w.now = w.read()
			at := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				at++
				w.look(at, 1)
			}
		})
	}
}
