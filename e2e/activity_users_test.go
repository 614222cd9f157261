package e2e

import (
	"testing"

	"sluice/internal/redistest"
)

// A shop keeps one set of buyers for the whole activity: who has bought one SKU can buy no other, and everyone else can
// buy each. It says nothing of a list of which no unit was ever seen.
func TestUsersKey_ABuyerOfOneSKUIsADuplicateForAll(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	for _, sku := range []string{"1001", "1002"} {
		redis.Client.RPush(t.Context(), "goods_store:"+sku, 1, 1, 1)
	}
	redis.Client.SAdd(t.Context(), "order_user_list", "7")
	g := gate(t, shop.setting(), redisAt(redis), unlimited, `stock.layout.type = "list"`,
		`stock.layout.key = "goods_store:$sku"`, `stock.layout.users_key = "order_user_list"`)
	other := func(sku string) answer { return g.ask("POST", "/api/seckill/"+sku+"/order", "Cookie: uid=8") }
	for _, sku := range []string{"1001", "1002"} {
		g.order(sku).must(t, 409, "duplicate") // user 7
		other(sku).must(t, 200, "")
	}
	other("1003").must(t, 404, "unknown_sku")
	redis.Client.SAdd(t.Context(), "order_user_list", "8")
	other("1001").must(t, 409, "duplicate")
	if n := shop.arrivals.Load(); n != 2 {
		t.Errorf("%d orders reached the shop, want 2", n)
	}
}
