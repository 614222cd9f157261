package e2e

import (
	"context"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
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

// The same with keys of the shop's own script.
func TestScript_TemplatesOfKeysEndWhereTheUserSays(t *testing.T) {
	testkit.Nightly(t, "of the shop's own script")
	t.Parallel()
	r, behind := redistest.Start(t), open(t, nil)
	r.Client.HSet(context.Background(), "goods_1001_stock", "inStock", 1)
	s := gate(t, redisAt(r), boundless, behind.setting(), `
stock.layout.type = "hash_left"
stock.layout.key = "goods_$(sku)_stock"
stock.script.preset = "hash_instock"
stock.script.keys = ["goods_$(sku)_stock", "$(serial)_$(sku)"]`, reserveRoutes)
	b := &buyer{user: "7", key: "a100"}
	defer b.leave()
	if status, reason := b.buy(s.front); status != 200 {
		t.Errorf("by the script: %d %s", status, reason)
	}
	if left := r.Client.HGet(context.Background(), "goods_1001_stock", "inStock").Val(); left != "0" {
		t.Errorf("%s left", left)
	}
	if n := r.Client.Exists(context.Background(), "a100_1001").Val(); n != 1 {
		t.Error("the script has no mark of the order under $(serial)_$(sku)")
	}
}
