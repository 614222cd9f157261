package e2e

import (
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// A shop that takes its stock itself: metrics, dashboard and log tell which SKUs are wanted and what is left of them,
// and no name that only a client knows.
func TestDemand_SKUsOfCheckRoutesAreMeasuredByName(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Client.Set(t.Context(), "seckill:stock:1001", 0, 0)
	redis.Client.Set(t.Context(), "seckill:stock:1002", 7, 0)
	redis.Client.Set(t.Context(), "seckill:stock:1003", 3, 0)
	g := gate(t, open(t, nil).setting(), redisAt(redis), unlimited, routes+
		"[[sale]]\nname = \"today\"\nskus = [\"1002\", \"1003\"]\n"+
		"starts = 2020-11-11T00:00:00+08:00\nends = 2099-11-11T02:00:00+08:00\n")
	g.order("1002").must(t, 200, "")
	rush(t, g.front, 8, 1200)
	g.order("invented").must(t, 404, "unknown_sku")
	soon(t, "the most wanted SKU is counted by name", func() bool {
		return g.metric("sluice_hot_sku_requests", `sku="1001"`) > 0 &&
			g.metric("sluice_sku_stock_readings_total", `sku="1002"`) > 0
	})
	g.order("1001").must(t, 409, "sold_out")
	g.wantMetric(1, "sluice_sku_requests_total", `sku="1002"`, `result="forwarded"`)
	// Requests count under _other until the SKU is found hot, which a slow rush may see while it still runs.
	soon(t, "1202 rejections are counted, some by name", func() bool {
		named := g.metric("sluice_sku_requests_total", `sku="1001"`, `result="rejected"`)
		other := g.metric("sluice_sku_requests_total", `sku="_other"`, `result="rejected"`)
		return named >= 1 && other >= 1 && named+other == 1202
	})
	soon(t, "the units are those of the shop", func() bool {
		return g.metric("sluice_sku_stock_left", `sku="1002"`) == 7 && g.metric("sluice_sku_stock_left", `sku="1003"`) == 3 &&
			strings.Contains(g.scrape(), `sluice_sku_stock_left{sku="1001"} 0`)
	})
	if strings.Contains(g.scrape(), "invented") {
		t.Error("a name that a client invented is in the metrics")
	}
	soon(t, "the log names the hot SKU", func() bool {
		for _, l := range g.log.lines() {
			if l.SKU == "1001" && strings.Contains(l.Msg, "hot") {
				return true
			}
		}
		return false
	})
	soon(t, "the history has it", func() bool {
		var told struct {
			Seconds []struct {
				Hot []struct {
					SKU  string
					Left *int64
				}
				NotCounted []struct{ SKU string } `json:"not_counted"`
			}
		}
		g.told("GET", "/history", "", &told)
		if len(told.Seconds) == 0 {
			return false
		}
		s := told.Seconds[len(told.Seconds)-1]
		return len(s.Hot) > 0 && s.Hot[0].SKU == "1001" && s.Hot[0].Left != nil && len(s.NotCounted) == 3
	})
	var report struct {
		Balances   *bool
		NotCounted []struct {
			SKU  string
			Left int64
		} `json:"not_counted"`
	}
	soon(t, "the report has the units of the sale", func() bool {
		report.Balances, report.NotCounted = nil, nil
		g.told("GET", "/report?sale=today", "", &report)
		return len(report.NotCounted) == 2 && report.NotCounted[0].Left == 7
	})
	if report.Balances != nil {
		t.Errorf("the report says %+v", report)
	}
}
