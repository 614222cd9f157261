package e2e

import (
	"os"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// A sale is ended for good, and then its block is taken out of the file, while its hours are not over.
func TestSale_EndedOneSellsNothingWhenItsBlockIsTakenOut(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), open(t, nil)
	begins := time.Now().Add(-5 * time.Minute)
	g := reserves(t, r, 100, shop.setting(), saleOf(begins))
	soon(t, "orders go on", func() bool { return g.order("1001").is(200, "") })
	ok(t, "sale", "end", "--config", g.file, "rush")
	soon(t, "its ledger hears of it", func() bool {
		closes, _ := r.Client.HGet(t.Context(), "sluice:shop:{1001}:s", "closes").Int64()
		return closes > 0 && closes <= time.Now().UnixMilli()
	})
	if err := os.WriteFile(g.file, []byte(g.change(saleOf(begins), "")), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, "reload", "--admin", g.admin)
	b := &buyer{user: "u-late"}
	defer b.leave()
	for range 5 {
		if status, _ := b.buy(g.front); status == 200 {
			t.Fatal("the sale was ended for good, and sells")
		}
	}
}
