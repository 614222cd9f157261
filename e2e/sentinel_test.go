package e2e

import (
	"net/http"
	"strconv"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/redisconn"
)

func TestSentinel_FailOverUnderLoadGoesOnByItself(t *testing.T) {
	t.Parallel()
	const skus, units, shoppers = 10, 60, 600
	over := make(chan struct{}) // the fail-over: the sale is not over before
	w, shop := redistest.Sentinel(t), book(t, func(n int, _ http.ResponseWriter, _ *http.Request) bool {
		if n > shoppers/2 {
			<-over
		}
		return false
	})
	stockAll(t, redisconn.Options{Topology: redisconn.Sentinel, Addresses: w.Addrs(), MasterName: w.Name}, skus, units)
	settings := []string{
		"stock.source = \"redis\"\nstock.redis.addresses = " + quoted(w.Addrs()...) + "\nstock.redis.master_name = " +
			strconv.Quote(w.Name),
		boundless, shop.setting(), `stock.reserve.reservation_ttl = "2s"`, reserveRoutes,
	}
	one, two := gate(t, settings...), gate(t, settings...)
	served, end := shopping(shoppers, 20, skus, []string{one.front, two.front})
	soon(t, "a quarter is sold", func() bool { return served.Load() > int64(shoppers/4) })
	old := w.Master()
	old.Kill()
	next := w.Successor(old)
	before := served.Load()
	close(over)
	soon(t, "the sale goes on", func() bool { return served.Load() > before })
	end()
	reckon(t, next.Client, shop, skus, units)
}
