//go:build unix

package ledger

import (
	"context"
	"syscall"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// BenchmarkSweep prints what looking after a ledger in which nothing happens costs this process and Redis, in time of
// processors, as the number of those that share a call grows.
func BenchmarkSweep(b *testing.B) {
	for _, share := range []string{"1", "64"} {
		b.Run(share, func(b *testing.B) {
			server, r := onRedis(b)
			skus := many(b, r, 10*MaxTogether)
			at, now := 0, time.Now().UnixMilli()
			one := func() {
				testkit.Must[[]Record](b)(r.Sweep(context.Background(), skus[at%len(skus)], now, now+1, 256))
				at++
			}
			if share != "1" {
				one = func() {
					if at%MaxTogether == 0 {
						from := at % len(skus)
						for _, s := range r.SweepAll(context.Background(), skus[from:from+MaxTogether], now, now+1) {
							testkit.Check(b, s.Err)
						}
					}
					at++
				}
			}
			for range 2 * len(skus) {
				one()
			}
			redis, here := server.CPU(), own(b)
			for b.Loop() {
				one()
			}
			n := float64(b.N)
			b.ReportMetric((own(b)-here)*1e6/n, "cpu-µs/ledger")
			b.ReportMetric((server.CPU()-redis)*1e6/n, "redis-cpu-µs/ledger")
		})
	}
}

// own is how many seconds of a processor this process has used.
func own(b *testing.B) float64 {
	var u syscall.Rusage
	testkit.Check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
