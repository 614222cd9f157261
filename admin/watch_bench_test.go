package admin

import (
	"fmt"
	"strconv"
	"testing"

	"sluice/proxy/reject"
)

// What a second of looking costs, with many routes, all of them asked, and 100 SKUs.
func BenchmarkLook(b *testing.B) {
	for _, routes := range []int{50, 1000} {
		b.Run(fmt.Sprintf("routes=%d", routes), func(b *testing.B) {
			c := newCounted()
			for i := range routes {
				c.answer("route-"+strconv.Itoa(i), 20, map[reject.Reason]int64{reject.Window: 1, reject.SoldOut: 1,
					reject.Concurrency: 1, reject.Rate: 1, reject.ConnRate: 1,
					reject.QueueTimeout: 1, reject.StockError: 1, reject.Ended: 1, reject.Paused: 1, reject.NotStarted: 1})
			}
			for i := range 100 {
				c.sold.WithLabelValues("sku-" + strconv.Itoa(i)).Set(float64(i))
			}
			w := &History{traffic: c.traffic, metrics: c.registry, news: make(chan struct{}), skus: map[string]*moments{}}
			w.now = w.read()
			at := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				at++
				w.addSecond(at, 1)
			}
		})
	}
}
