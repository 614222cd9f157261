package ledger

import (
	"context"
	"fmt"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// BenchmarkUnitsOf prints what it costs Redis in CPU time to count the units of a user in so many ledgers, in calls for
// 32 users.
func BenchmarkUnitsOf(b *testing.B) {
	for _, n := range []int{3, 16, 64} {
		b.Run(fmt.Sprint(n, "-skus"), func(b *testing.B) {
			server := redistest.Start(b)
			r := testkit.Must[*Store](b)(NewStore(optionsFor(server, 16)))
			defer r.Close()
			var skus []string
			for i := range n {
				skus = append(skus, fmt.Sprint("s", i))
				testkit.Must[Stock](b)(r.SetTotal(context.Background(), skus[i], 9, 0))
			}
			users := make([]string, 32)
			for i := range users {
				users[i] = fmt.Sprint("user ", i)
			}
			count := func(int) {
				for _, one := range r.UnitsOf(context.Background(), skus, users) {
					if one.Err != nil || one.State != On {
						b.Errorf("%+v", one)
					}
				}
			}
			testkit.Storm(100, 16, count)
			before := server.CPU()
			b.ResetTimer()
			testkit.Storm(b.N, 16, count)
			b.StopTimer()
			b.ReportMetric((server.CPU()-before)*1e6/float64(b.N)/float64(len(users)), "redis-cpu-µs/count")
		})
	}
}

// BenchmarkFindAll prints what it costs Redis in CPU time to look 64 orders up that do not exist, of so many SKUs.
func BenchmarkFindAll(b *testing.B) {
	for _, n := range []int{1, 16, 64, 0} {
		b.Run(fmt.Sprint(n, "-skus"), func(b *testing.B) {
			server := redistest.Start(b)
			r := testkit.Must[*Store](b)(NewStore(optionsFor(server, 16)))
			defer r.Close()
			names := make([]OrderName, 64)
			for i := range names {
				names[i] = OrderName{SKU: fmt.Sprint("invented", i), Serial: fmt.Sprint("serial-", i)}
				if n > 0 {
					names[i].SKU = fmt.Sprint("s", i%n)
					testkit.Must[Stock](b)(r.SetTotal(context.Background(), names[i].SKU, 9, 0))
				}
			}
			find := func(int) {
				for _, one := range r.FindAll(context.Background(), names) {
					if one.Err != nil || one.OK {
						b.Errorf("%+v", one)
					}
				}
			}
			testkit.Storm(100, 16, find)
			before := server.CPU()
			b.ResetTimer()
			testkit.Storm(b.N, 16, find)
			b.StopTimer()
			b.ReportMetric((server.CPU()-before)*1e6/float64(b.N)/float64(len(names)), "redis-cpu-µs/order")
		})
	}
}
