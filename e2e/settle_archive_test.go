package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// The key of the shop shows how the sale ended, also when the ledger's orders are forgotten. Who bought then, and sends
// no key, makes another order in the next sale.
func TestArchive_LeavesTheShopsKeyAndBeginsAnotherSale(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), book(t, nil)
	g := reserves(t, r, 5, shop.setting(), keepsChanges, "stock.reserve.write_back = true")
	left := func() string { return r.Client.Get(context.Background(), key).Val() }
	for _, user := range []string{"ann", "bob"} {
		b := &buyer{user: user}
		defer b.leave()
		if status, reason := b.buy(g.front); status != 200 {
			t.Fatalf("%d %s", status, reason)
		}
	}
	ok(t, "stock", "end", "--admin", g.admin, "1001")
	soon(t, "the key shows what is free", func() bool { return ledgerOf(t, r, "1001").held == 0 && left() == "3" })
	settled := file(t, fmt.Sprintf("upstream.targets = [\"http://127.0.0.1:1\"]\nsettle.database = \"sqlite:%s\"\n"+
		"%s\n%s\n%s[[sale]]\nname = \"past\"\nskus = [\"1001\"]\nstarts = 2020-01-01T00:00:00Z\n"+
		"ends = 2020-01-02T00:00:00Z\n",
		filepath.Join(t.TempDir(), "settle.db"), keepsChanges, redisAt(r), reserveRoutes))
	settleOK(t, "migrate", "--config", settled)
	settleOK(t, "rebuild", "--config", settled, "1001")
	const older = "sluice_ledger_mirror_writes_total"
	before := g.metric(older, `result="older"`)
	wants(t, settleOK(t, "archive", "--config", settled, "past"), "archived; 2 records freed")
	soon(t, "the gate has seen the archived ledger", func() bool { return g.metric(older, `result="older"`) > before })
	if now := left(); now != "3" {
		t.Errorf("the key shows %s: want 3", now)
	}
	ok(t, "stock", "set", "--admin", g.admin, "1001", "7")
	soon(t, "the key shows a new stock", func() bool { return left() == "7" })
	ok(t, "stock", "resume", "--admin", g.admin, "1001")
	again := &buyer{user: "ann"} // who sends no key
	defer again.leave()
	soon(t, "ann buys in the next sale", func() bool {
		status, reason := again.buy(g.front)
		if status != 200 && reason != "ended" {
			t.Fatalf("%d %s", status, reason)
		}
		return status == 200
	})
	if n := shop.booked(); n != 3 {
		t.Errorf("the shop has %d orders: want 3, one of them of the next sale", n)
	}
	if strings.Contains(g.log.String(), "cannot be shown") {
		t.Error("the mirror has failed")
	}
}
