package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// Today's sale is paused, and then it ends. Tomorrow's has the same SKU and the same ledger, and sells.
func TestSale_NextOneOfASKUSellsWhateverWasSaidOfTheLastOne(t *testing.T) {
	t.Parallel()
	const form = "2006-01-02T15:04:05.000Z07:00"
	for _, how := range []string{"end", "time"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r, shop := redistest.Start(t), open(t, nil)
			begins := time.Now().Add(6 * time.Second)
			today := fmt.Sprintf("[[sale]]\nname = \"today\"\nskus = [\"1001\"]\nstarts = %s\nends = %s\n",
				time.Now().Add(-time.Hour).Format(form), begins.Add(-time.Second).Format(form))
			g := reserves(t, r, 100, shop.setting(), today, saleOf(begins))
			soon(t, "orders go on", func() bool { return g.order("1001").is(200, "") })
			ok(t, "sale", "pause", "--config", g.file, "today")
			soon(t, "it is paused", func() bool { return g.order("1001").is(503, "paused") })
			if how == "end" {
				ok(t, "sale", "end", "--config", g.file, "today")
			}
			b := &buyer{user: "u-next"}
			defer b.leave()
			soon(t, "the next sale sells", func() bool {
				status, _ := b.buy(g.front)
				return status == 200
			})
		})
	}
}

// The file of the one who ends a sale has a start that is corrected by a minute, and the gate has not read it yet.
func TestSale_IsEndedByAFileWithAnotherStart(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), open(t, nil)
	begins := time.Now().Add(-5 * time.Minute)
	r.Client.Set(t.Context(), key, 1000, 0)
	g := gate(t, redisAt(r), unlimited, shop.setting(), saleOf(begins),
		strings.Replace(routes, `gate = "check"`, `gate = "limit"`, 1))
	soon(t, "orders go on", func() bool { return g.order("1001").is(200, "") })
	other := file(t, g.change(saleOf(begins), saleOf(begins.Add(time.Minute))))
	ok(t, "sale", "end", "--config", other, "rush")
	soon(t, "it is ended", func() bool { return g.order("1001").reason == "ended" })
	s := run(t, "", "sale", "resume", "--config", g.file, "rush")
	if s.code == 0 || !strings.Contains(s.complaint, "with another name") {
		t.Errorf("exit %d: %s", s.code, s.complaint)
	}
}

// Without a stock in Redis the sale is known to the running gateway alone: the command says how to reach it.
func TestSale_IsPausedThroughTheGateWithoutAStock(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := gate(t, boundless, shop.setting(), `stock.source = "off"`, saleOf(time.Now().Add(-time.Minute)),
		strings.Replace(routes, `gate = "check"`, `gate = "limit"`, 1))
	s := run(t, "", "sale", "pause", "--config", g.file, "rush")
	if s.code == 0 || !strings.Contains(s.complaint, "; add --admin 127.0.0.1:") {
		t.Errorf("exit %d: %s", s.code, s.complaint)
	}
	ok(t, "sale", "pause", "--admin", g.admin, "rush")
	soon(t, "it is paused", func() bool { return g.order("1001").is(503, "paused") })
}

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
