package e2e

import (
	"testing"

	"sluice/internal/redistest"
)

// A crowd at a SKU that is sold out costs Redis no calls, whether the shop takes the units or the gate does.
func TestRedisCalls_CrowdAtASoldOutSKUCostsNone(t *testing.T) {
	t.Parallel()
	const crowd = 5000
	for name, routes := range map[string]string{"check": routes, "reserve": reserveRoutes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis, shop := redistest.Start(t), open(t, nil)
			g := gate(t, redisAt(redis), boundless, shop.setting(), `stock.sold_out_ttl = "1h"`, routes)
			ok(t, "stock", "set", "--config", g.file, "1001", "1")
			g.ask("POST", orderPath, "Cookie: uid=8").must(t, 200, "")
			if name == "check" { // the shop's own sale
				ok(t, "stock", "set", "--config", g.file, "1001", "0")
			}
			soon(t, "it is sold out", func() bool { return g.order("1001").is(409, "sold_out") })
			before, arrived := redis.Commands(), shop.arrivals.Load()
			if got := rush(t, g.front, 16, crowd); got["409 sold_out"] != crowd {
				t.Errorf("%v", got)
			}
			if n := shop.arrivals.Load() - arrived; n != 0 {
				t.Errorf("%d orders reached the shop", n)
			}
			// What an instance asks by itself, some times a second, counts too.
			if n := redis.Commands() - before; n > crowd/5 {
				t.Errorf("Redis got %d commands while %d orders came", n, crowd)
			}
		})
	}
}
