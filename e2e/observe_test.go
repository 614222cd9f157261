package e2e

import (
	"testing"

	"sluice/internal/redistest"
)

func TestObserve_RejectsNothingAndCountsEverything(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	redis.Client.Set(t.Context(), key, 0, 0)
	redis.Client.Set(t.Context(), "seckill:stock:plenty", 1_000_000, 0)
	redis.Client.Set(t.Context(), "seckill:stock:words", "none", 0)
	g := gate(t, shop.setting(), redisAt(redis), `mode = "observe"`, "limits.window.max_per_sku = 1",
		"limits.window.max_delay = \"0s\"",
		`limits.connection.request_rate = "1/s"`, "limits.connection.request_burst = 200",
		"limits.connection.max_connections_per_ip = 2")

	each := map[string]func() answer{
		"sold_out":    func() answer { return g.order("1001") },
		"unknown_sku": func() answer { return g.order("sold-nowhere") },
		"stock_error": func() answer { return g.order("words") },
		"bad_request": func() answer { return g.ask("POST", "/api/seckill/1001/order") },
	}
	for reason, send := range each {
		for range 10 {
			send().must(t, 200, "")
		}
		// Orders of one SKU that follow each other closely may be over its window instead, which is asked first.
		seen := g.metric("sluice_observed_rejections_total", `route="order"`, `reason="`+reason+`"`)
		if seen == 0 || reason == "bad_request" && seen != 10 {
			t.Errorf("%v of 10 were counted as %s", seen, reason)
		}
	}
	g.wantMetric(40, "sluice_observed_rejections_total")

	const total = 2000 // over the window of a SKU, the rate of a connection and the connections of an address
	crowd := rush(t, g.front, 8, total)
	if crowd["200 "] != total {
		t.Errorf("of %d orders were answered: %v", total, crowd)
	}
	if n := shop.arrivals.Load(); n != total+40 {
		t.Errorf("%d of %d orders reached the shop", n, total+40)
	}
	for _, reason := range []string{"sold_out", "conn_rate"} {
		soon(t, reason+" is observed",
			func() bool { return g.metric("sluice_observed_rejections_total", `reason="`+reason+`"`) > 0 })
	}
	soon(t, "ip_conns is observed",
		func() bool { return g.metric("sluice_observed_connection_rejections_total", `reason="ip_conns"`) > 0 })
	g.wantMetric(0, "sluice_rejected_connections_total")
	g.wantMetric(0, "sluice_rejected_requests_total")
}
