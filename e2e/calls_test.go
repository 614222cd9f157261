package e2e

import (
	"strconv"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// A crowd at a SKU that is sold out costs Redis next to nothing where the shop takes the units. Where the gate does, no
// order takes part in a call that may reserve. Calls that look orders up begin 50 times a second, and 50 at once after
// a quiet second.
func TestRedisCalls_CrowdAtASoldOutSKUCostsNone(t *testing.T) {
	t.Parallel()
	const crowd = 5000
	for name, routes := range map[string]string{
		"check": routes, "reserve": "stock.sold_out_ttl = \"1h\"\n" + reserveRoutes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis, shop := redistest.Start(t), open(t, nil)
			g := gate(t, redisAt(redis), boundless, shop.setting(), routes)
			ok(t, "stock", "set", "--config", g.file, "1001", "1")
			g.ask("POST", orderPath, "Cookie: uid=8").must(t, 200, "")
			if name == "check" { // the shop's own sale
				ok(t, "stock", "set", "--config", g.file, "1001", "0")
			}
			soon(t, "it is sold out", func() bool { return g.order("1001").is(409, "sold_out") })
			calls := func(operation string) float64 {
				return g.metric("sluice_ledger_call_orders_count", "operation="+strconv.Quote(operation))
			}
			commands, arrived, began := redis.Commands(), shop.arrivals.Load(), time.Now()
			reserves, lookUps := calls("reserve"), calls("lookup")
			if got := rush(t, g.front, 16, crowd); got["409 sold_out"] != crowd {
				t.Errorf("%v", got)
			}
			if n := shop.arrivals.Load() - arrived; n != 0 {
				t.Errorf("%d orders reached the shop", n)
			}
			if name == "check" {
				// What an instance asks by itself, some times a second, counts too.
				if n := redis.Commands() - commands; n > crowd/5 {
					t.Errorf("Redis got %d commands while %d orders came", n, crowd)
				}
				ok(t, "stock", "set", "--config", g.file, "1001", "5")
				soon(t, "it is sold again", func() bool { return g.order("1001").is(200, "") })
				return
			}
			if n := calls("reserve") - reserves; n != 0 {
				t.Errorf("%v calls that may reserve", n)
			}
			if n, most := calls("lookup")-lookUps, 200*(1+time.Since(began).Seconds()); n == 0 || n > most {
				t.Errorf("%v calls that look orders up, want 1 to %v", n, most)
			}
		})
	}
}
