package e2e

import (
	"testing"
	"time"

	"sluice/internal/testkit"
)

// What the shop sees of windows: at most twice the max in any stretch of a window's size, on the shop's clock. On the
// gate's own windows the bound is exact: no more than the max in each that was used.
//
// A machine that stops for a moment lets requests arrive together that were let in one after the other, so that the law
// of the shop's clock is wanted of one run in several; a gate that let more in would break it in each.
func TestWindowLimit_BurstIsTwoWindowsAtMost(t *testing.T) {
	testkit.Nightly(t, "it measures rates over real time")
	const most, runs, perSecond = 10, 20, 2000
	for _, delay := range []string{"0s", "10ms"} {
		worst := 0
		kept := false
		for range runs {
			shop := openDated(t)
			g := gate(t, shop.shop.setting(), `stock.source = "off"`, unlimited, "limits.window.max = 10",
				"limits.window.max_per_sku = 0",
				`limits.window.max_delay = "`+delay+`"`, "limits.concurrency.max_in_flight = 1000", fleetRoute)
			crowdedFor(t, g.front, perSecond, 300*time.Millisecond)
			admitted, used := shop.since(shop.start), g.metric("sluice_windows_total", `of="all"`)
			if float64(admitted) > most*used {
				t.Errorf("max_delay %s: %d came in %.0f windows of %d", delay, admitted, used, most)
			}
			worst = shop.worst(10 * time.Millisecond)
			full := g.metric("sluice_windows_saturated_total", `of="all"`)
			t.Logf("max_delay %s: %d came in %.0f windows, %.0f of them full; at most %d in any 10 ms", delay, admitted, used,
				full,
				worst)
			if kept = worst <= 2*most && full >= 10; kept {
				break
			}
		}
		if !kept {
			t.Errorf("max_delay %s: each of %d runs had more than %d in some 10 ms of the shop's clock, the last one %d", delay,
				runs, 2*most, worst)
		}
	}
}
