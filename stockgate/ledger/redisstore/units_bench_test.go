package redisstore

import (
	"context"
	"fmt"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// BenchmarkUnitsOf prints what it costs Redis in CPU time to count the units of a user in so many ledgers, in calls for
// 32 users.
func BenchmarkUnitsOf(b *testing.B) {
	for _, n := range []int{3, 16, 64} {
		b.Run(fmt.Sprint(n, "-skus"), func(b *testing.B) {
			server := redistest.Start(b)
			r := ledgertest.Must[*Store](b)(New(optionsFor(server, 16)))
			defer r.Close()
			var skus []string
			for i := range n {
				skus = append(skus, fmt.Sprint("s", i))
				ledgertest.Must[protocol.Stock](b)(r.SetTotal(context.Background(), skus[i], 9, 0))
			}
			users := make([]string, 32)
			for i := range users {
				users[i] = fmt.Sprint("user ", i)
			}
			count := func(int) {
				for _, one := range r.UnitsOf(context.Background(), skus, users) {
					if one.Err != nil || one.State != protocol.On {
						b.Errorf("%+v", one)
					}
				}
			}
			ledgertest.Storm(100, 16, count)
			before := processor(b, server)
			b.ResetTimer()
			ledgertest.Storm(b.N, 16, count)
			b.StopTimer()
			b.ReportMetric((processor(b, server)-before)*1e6/float64(b.N)/float64(len(users)), "redis-cpu-µs/count")
		})
	}
}
