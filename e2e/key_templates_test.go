package e2e

import (
	"context"
	"testing"

	"sluice/internal/redistest"
)

// A shop with one hash for all SKUs, whose names end where the shop says.
func TestKeys_TemplatesEndWhereTheUserSays(t *testing.T) {
	t.Parallel()
	r, behind := redistest.Start(t), open(t, nil)
	r.Client.HSet(context.Background(), "shop_goods", "1001_left", 1, "1001_on", 1, "1002_left", 0, "1002_on", 1,
		"1003_left", 9, "1003_on", 0)
	g := gate(t, redisAt(r), boundless, behind.setting(), `
stock.layout.type = "hash_left"
stock.layout.key = "shop_goods"
stock.layout.left_field = "$(sku)_left"
stock.layout.status_field = "$(sku)_on"`)
	for sku, want := range map[string]string{"1001": "", "1002": "sold_out", "1003": "paused", "1004": "unknown_sku"} {
		b := &buyer{user: "7", sku: sku}
		if _, reason := b.buy(g.front); reason != want {
			t.Errorf("%s: %q, want %q", sku, reason, want)
		}
		b.leave()
	}
}
