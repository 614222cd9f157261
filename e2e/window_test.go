package e2e

import (
	"testing"
	"time"

	"sluice/internal/redistest"
)

const windowSize = 10 * time.Millisecond

func TestWindowLimit_AdmitsItsMaxInEachWindow(t *testing.T) {
	t.Parallel()
	const maxPerSKU, total = 2, 5_000
	redis := redistest.Start(t)
	redis.Client.Set(t.Context(), key, 1_000_000, 0)
	shop := open(t, nil)
	g := gate(t, shop.setting(), redisAt(redis), unlimited, "limits.window.max_per_sku = 2",
		"limits.window.max_delay = \"0s\"")
	start := time.Now()
	got := rush(t, g.front, 16, total)
	windows := int(time.Since(start)/windowSize) + 2 // an interval touches so many at most

	admitted, rejected := int(shop.arrivals.Load()), got["429 window"]
	used := int(g.metric("sluice_windows_total", `of="sku"`))
	t.Logf("%d of %d orders admitted in %d windows, of which %d were used", admitted, total, windows, used)
	if admitted > maxPerSKU*min(windows, used) {
		t.Errorf("%d orders admitted in %d windows, of which %d were used: want %d a window at most", admitted, windows, used,
			maxPerSKU)
	}
	if admitted == 0 || rejected == 0 || got["200 "] != admitted || admitted+rejected != total {
		t.Errorf("%d orders reached the shop; the answers are %v", admitted, got)
	}
	g.wantMetric(float64(rejected), "sluice_rejected_requests_total", `reason="window"`)
}
