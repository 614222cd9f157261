package e2e

import (
	"net/http"
	"testing"

	"sluice/internal/redistest"
)

// A burst at a SKU that no request has asked for, without a window limit. The upstream sells all units, and is asked at
// most three times for each: also where Redis is slow to answer the first reading.
func TestCheck_AFirstBurstReachesTheUpstreamThreeTimesAUnitAtMost(t *testing.T) {
	t.Parallel()
	const units, burst = 10, 500
	redis := redistest.Start(t)
	shop := open(t, sells(redis.Client))
	redis.Client.Set(t.Context(), key, units, 0)
	g := gate(t, shop.setting(), redisAt(redis), boundless)
	arrived := shop.arrivals.Load()
	got := rush(t, g.front, burst, burst)
	n := shop.arrivals.Load() - arrived
	t.Logf("%d orders for %d units: %d reached the upstream; %v", burst, units, n, got)
	if n > 3*units {
		t.Errorf("%d orders reached the upstream for %d units", n, units)
	}
	if got["200 "]+got["409 "]+got["409 sold_out"]+got["429 concurrency"] != burst {
		t.Errorf("%v", got)
	}
	soon(t, "the shop has nothing left", func() bool {
		left := redis.Client.Get(t.Context(), key).Val()
		if left != "0" {
			g.order("1001")
		}
		return left == "0"
	})
}

// An order that the upstream rejects without a sale leaves its try to the next one: units are sold to the last.
func TestCheck_TriesThatSoldNothingAreGrantedAgain(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Client.Set(t.Context(), key, 1, 0)
	shop := open(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPaymentRequired) })
	g := gate(t, shop.setting(), redisAt(redis), unlimited, "stock.max_in_flight_per_unit = 1")
	for n := range 5 {
		soon(t, "an order reaches the upstream", func() bool { return g.order("1001").is(402, "") })
		if got := shop.arrivals.Load(); got != int64(n+1) {
			t.Fatalf("%d orders reached the upstream, want %d", got, n+1)
		}
	}
}
