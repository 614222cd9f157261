package ledger

import (
	"context"
	"strconv"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// BenchmarkRedisCPU prints what an order, reserved and confirmed, costs Redis in CPU time of its whole process,
// network included, with 512 buyers at once: through a reserver, and by the same scripts called once an order. There
// are units for all.
func BenchmarkRedisCPU(b *testing.B) {
	const buyers = 512
	for _, how := range []string{"batched", "once-an-order"} {
		b.Run(how, func(b *testing.B) {
			server := redistest.Start(b)
			o := optionsFor(server, 16)
			if how == "once-an-order" {
				o.PoolSize = buyers
			}
			r := testkit.Must[*Store](b)(NewStore(o))
			defer r.Close()
			testkit.Must[Stock](b)(r.SetTotal(context.Background(), testSKU, MaxNumber, 0))
			d := opened(b, testOptions(), r, nil)
			buy := func(n string) { oneByOne(b, r, n) }
			if how == "batched" {
				buy = func(n string) {
					if out := d.buy(n, n); out.Code == Held {
						d.Settle(testSKU, out.Serial, Confirm)
					} else {
						b.Errorf("order: %v", out)
					}
				}
			}
			testkit.Storm(4*buyers, buyers, func(i int) { buy("warm-" + strconv.Itoa(i)) })
			before := server.CPU()
			b.ResetTimer()
			testkit.Storm(b.N, buyers, func(i int) { buy(strconv.Itoa(i)) })
			testkit.Eventually(b, "all is settled", func() bool { return stockIn(b, r).Held == 0 })
			b.StopTimer()
			b.ReportMetric((server.CPU()-before)*1e6/float64(b.N), "redis-cpu-µs/order")
		})
	}
}

// oneByOne reserves and confirms one order, by a call each.
func oneByOne(b *testing.B, r *Store, n string) {
	codes, done, items := make([]Code, 1), make([]Done, 1), []Item{
		{Serial: n, User: n, Quantity: 1},
	}
	_, err := r.Reserve(context.Background(), testSKU, 0, 1, 1_700_000_000_000, items, codes)
	testkit.Check(b, err)
	_, err = r.Finish(context.Background(), testSKU, 1, 2_000, Confirm, items, done)
	testkit.Check(b, err)
}
