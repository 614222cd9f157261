package redisstore

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
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
			r := ledgertest.Must[*Store](b)(New(o))
			defer r.Close()
			ledgertest.Must[protocol.Stock](b)(r.SetTotal(context.Background(), ledgertest.SKU, protocol.MaxNumber, 0))
			d := opened(b, deskOptions(), r, nil)
			buy := func(n string) { oneByOne(b, r, n) }
			if how == "batched" {
				buy = func(n string) {
					if out := d.buy(n, n); out.Code == protocol.Held {
						d.Settle(ledgertest.SKU, protocol.Item{Serial: out.Serial}, protocol.Confirm)
					} else {
						b.Errorf("order: %v", out)
					}
				}
			}
			ledgertest.Storm(4*buyers, buyers, func(i int) { buy("warm-" + strconv.Itoa(i)) })
			before := processor(b, server)
			b.ResetTimer()
			ledgertest.Storm(b.N, buyers, func(i int) { buy(strconv.Itoa(i)) })
			ledgertest.Until(b, "all is settled", func() bool { return ledgertest.StockOf(b, r).Held == 0 })
			b.StopTimer()
			b.ReportMetric((processor(b, server)-before)*1e6/float64(b.N), "redis-cpu-µs/order")
		})
	}
}

// oneByOne reserves and confirms one order, by a call each.
func oneByOne(b *testing.B, r *Store, n string) {
	codes, done, items := make(
		[]protocol.Code,
		1,
	), make(
		[]protocol.Done,
		1,
	), []protocol.Item{
		{Serial: n, User: n, Quantity: 1},
	}
	_, err := r.Reserve(context.Background(), ledgertest.SKU, 0, 1, 1_700_000_000_000, items, codes)
	ledgertest.Check(b, err)
	_, err = r.Finish(context.Background(), ledgertest.SKU, 1, 2_000, protocol.Confirm, items, done)
	ledgertest.Check(b, err)
}

// processor is how many seconds of a processor the server has used.
func processor(b *testing.B, server *redistest.Server) (seconds float64) {
	text, err := server.Client.Info(context.Background(), "cpu").Result()
	ledgertest.Check(b, err)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			n, err := strconv.ParseFloat(value, 64)
			ledgertest.Check(b, err)
			seconds += n
		}
	}
	return seconds
}
