package e2e

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// A sale that a reload brings is on the shared clock from its first request on, not on this machine's until a request
// has asked Redis.
func TestSchedule_SaleOfAReloadDoesNotOpenByAWrongClock(t *testing.T) {
	t.Parallel()
	r, shop, bin := redistest.Start(t), open(t, nil), breakable(t)
	settings := strings.Join([]string{listeners + `server.shutdown_delay = "0s"`, redisAt(r), boundless, shop.setting(),
		strings.Replace(routes, `gate = "check"`, `gate = "limit"`, 1)}, "\n")
	for _, ahead := range []time.Duration{1500 * time.Millisecond, time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			g := clocked(t, ahead.String(), file(t, settings), bin)
			var early atomic.Bool // an order was
			stop := ordering(t, []*running{g}, func(_, _ int, reason string) {
				if reason == "not_started" {
					early.Store(true)
				}
			})
			defer stop()
			soon(t, "early orders are rejected", func() bool { // a busy machine may read the file when the sale is on
				begins := time.Now().Add(ahead - 100*time.Millisecond) // over for this machine, early by Redis
				g.rewrite(settings+"\n"+saleOf(begins), true)
				arrived := shop.arrivals.Load()
				for !early.Load() && time.Now().Before(begins) {
					time.Sleep(time.Millisecond) // between two looks
				}
				n := shop.arrivals.Load() - arrived
				if n > 2 && time.Now().Before(begins) { // two may be on their way
					t.Errorf("%d orders reached the shop before the start", n)
				}
				return early.Load()
			})
		})
	}
}
