//go:build unix

package ledger

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// BenchmarkProbe prints what finding out whether a SKU is still sold out costs this process and Redis, in time of processors,
// when 10,000 of them are asked for in turn, at the pace at which a desk looks at all of them.
func BenchmarkProbe(b *testing.B) {
	server, r := onRedis(b)
	const n = 10_000
	names := make([][]byte, n)
	for i := range names {
		names[i] = fmt.Append(nil, "gone-", i)
		must[Stock](b)(r.SetTotal(context.Background(), string(names[i]), 0, 0))
	}
	d, _ := idle(b, r, nil)
	for i, sku := range names { // each is closed, and its winners, whom there are none of, are read
		d.Expect(string(sku))
		d.Reserve(d.o.Now(), Order{SKU: sku, User: []byte("somebody"), Quantity: 1})
		for i%100 == 99 && d.lines.find(sku).reading.Load() {
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(d.o.SoldOutMemory)
	var asking sync.WaitGroup
	tick := time.NewTicker(time.Duration(probeEvery))
	defer tick.Stop()
	before := server.Calls("evalsha")
	redis, here := processor(b, server), own(b)
	for i := 0; b.Loop(); i++ {
		<-tick.C
		asking.Go(func() {
			if out := d.Reserve(d.o.Now(), Order{SKU: names[i%n], User: []byte("somebody"), Quantity: 1}); out.Code != SoldOut {
				b.Error(out)
			}
		})
	}
	asking.Wait()
	probes := float64(b.N)
	b.ReportMetric((own(b)-here)*1e6/probes, "cpu-µs/probe")
	b.ReportMetric((processor(b, server)-redis)*1e6/probes, "redis-cpu-µs/probe")
	b.ReportMetric(float64(server.Calls("evalsha")-before)/probes, "scripts/probe")
}
