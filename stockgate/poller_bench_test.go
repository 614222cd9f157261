package stockgate

import (
	"fmt"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/layout"
)

// What one refresh costs against a real Redis on loopback, by the number of SKUs.
func BenchmarkRead(b *testing.B) {
	server := redistest.Start(b)
	for layoutName, o := range layouts() {
		s := dial(b, server, o)
		for _, n := range []int{1, 10, readAtOnce} {
			b.Run(fmt.Sprintf("%s/%d", layoutName, n), func(b *testing.B) {
				skus := make([]string, n)
				for i := range skus {
					skus[i] = layoutName + string(name(i))
					testkit.Check(b, s.Set(b.Context(), skus[i], 5))
				}
				out := make([]layout.Reading, n)
				b.ReportAllocs()
				for b.Loop() {
					testkit.Check(b, s.Read(b.Context(), skus, out))
				}
			})
		}
	}
}

// One turn over 10,000 SKUs against a real Redis on loopback: when a request has asked for each, and when none has
// since it was read.
func BenchmarkTurn(b *testing.B) {
	server := redistest.Start(b)
	const skus = 10_000
	for _, layoutName := range []string{"counter", "hash_left"} {
		for _, asked := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/asked=%t", layoutName, asked), func(b *testing.B) {
				now, o := int64(1), options()
				o.Now = func() int64 { return now }
				s := dial(b, server, layouts()[layoutName])
				g := stepped(b, o, s)
				for i := range skus {
					testkit.Check(b, s.Set(b.Context(), string(name(i)), 5))
					g.poller.publishReading(now, addEntry(g.table, now, name(i)), reading(5))
				}
				b.ReportAllocs()
				for b.Loop() {
					now += g.poller.rules.Load().refresh
					for i := range skus {
						e := g.poller.active[i]
						if asked {
							e.asked.Store(now)
						} else {
							e.publish(onSale, 5, now-g.poller.rules.Load().refresh)
							e.asked.Store(now - g.poller.rules.Load().refresh - 1)
						}
					}
					g.poller.pollOnce(b.Context(), now)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/skus, "ns/SKU")
			})
		}
	}
}
