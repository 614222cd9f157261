package e2e

import (
	"net/http"
	"path/filepath"
	"testing"

	"sluice/internal/redistest"
)

// hours is a sale that is on, or far away.
func hours(name, starts, skus, more string) string {
	return "[[sale]]\nname = \"" + name + "\"\nskus = [" + skus + "]\nstarts = " + starts + "-11-11T00:00:00+08:00\n" +
		"ends = 2199-11-11T02:00:00+08:00\n" + more + "\n"
}

// written counts the changes of a status that a gate has written.
func written(g *running) (n int) {
	for _, l := range g.log.lines() {
		if l.Msg == "sale: status written into the shop's key" {
			n++
		}
	}
	return n
}

// The last unit is sold and paid: the settler ends the SKU, and the shop's status says so. A gate that starts then
// leaves it so. A unit that comes back is on sale again, and the status with it.
func TestWriteBack_TheStatusEndsWhenAllIsPaidAndOpensWhenAUnitComesBack(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t, lasting...), open(t, nil)
	g := reserves(t, redis, 1, shop.setting(), keepsChanges, "stock.reserve.write_back = true",
		`stock.layout.status_key = "goods_status:$sku"`, `stock.layout.status_open = ["2"]`,
		`stock.layout.status_closed = "9"`, hours("today", "2020", `"1001"`, ""))
	settler(t, "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), redisAt(redis),
		`settle.paid.query = "SELECT SUM(quantity) FROM sluice_order WHERE sku = :sku AND status = 'C'"`)
	becomes := func(when, want string) {
		t.Helper()
		soon(t, when+" the status is "+want, func() bool {
			return redis.Client.Get(t.Context(), "goods_status:1001").Val() == want
		})
	}
	buys := func(user string) bool {
		b := &buyer{user: user, sku: "1001"}
		defer b.leave()
		status, _ := b.buy(g.front)
		return status == http.StatusOK
	}
	becomes("while a unit is free", "2")
	soon(t, "the unit is sold", func() bool { return buys("7") })
	becomes("when all is paid", "9")
	g.die()
	g = g.again(t)
	serial := redis.Client.HKeys(t.Context(), "sluice:shop:{1001}:r").Val()[0]
	ok(t, "reservation", "refund", "--config", g.file, "--sku", "1001", serial)
	becomes("when a unit came back", "2")
	soon(t, "it is sold again", func() bool { return buys("8") })
	becomes("when all is paid again", "9")
	soon(t, "the last change is in the log", func() bool { return written(g) >= 2 })
	if n := written(g); n != 2 {
		t.Errorf("the second gate wrote %d changes, want 2: none before the unit came back", n)
	}
}
