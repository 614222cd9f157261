package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// lockScript is a shop whose script answers busy while the shop holds its lock.
const lockScript = `
stock.layout.key = "stock:$(sku)_left"
stock.script.preset = "lock"
stock.script.keys = ["stock:$(sku)_left", "lock:$(sku)"]
stock.script.ttl = "1s"
stock.reserve.confirm_on = []
stock.reserve.on_not_found = "cancel_then_release"
`

// The shop confirms what is paid. The rest is given back by its own script, and so is what it refunds.
func TestScript_PaymentDecides(t *testing.T) {
	testkit.Nightly(t, `the tests of gate = "check" and of the ledger run always`)
	r := redistest.Start(t)
	behind := open(t, func(w http.ResponseWriter, q *http.Request) {
		if strings.HasPrefix(q.URL.Path, "/by-serial/") && q.URL.Path != "/by-serial/paid" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	left := func() string { return r.Client.Get(context.Background(), "stock:1001_left").Val() }
	r.Client.Set(context.Background(), "stock:1001_left", 5, 0)
	g := gate(t, redisAt(r), boundless, lockScript, behind.setting(),
		"stock.reserve.status_url = \""+behind.url+"/by-serial/{serial}\"", reserveRoutes)
	order := func(key string) {
		b := &buyer{user: "7", key: key}
		defer b.leave()
		b.buy(g.front)
	}
	post := func(path string, status int) {
		t.Helper()
		resp, err := g.client.Post("http://"+g.admin+"/api/v1/reservations/"+path, "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, status)
		}
	}
	order("paid")
	post("paid/confirm?sku=1001", 200)
	order("unpaid")
	soon(t, "what was not paid is back", func() bool { return left() == "4" })
	if text := state(t, g, "paid"); !strings.Contains(text, `"confirmed"`) {
		t.Errorf("the paid order is %s", text)
	}
	r.Client.Set(context.Background(), "lock:1001", "shop", 0)
	post("paid/refund?sku=1001", 200)
	soon(t, "the units that the script cannot give back are listed", func() bool {
		return strings.Contains(ok(t, "reservation", "list", "--config", g.file, "--state", "owed"), "to be given back since")
	})
	r.Client.Del(context.Background(), "lock:1001")
	soon(t, "the refunded units are back", func() bool { return left() == "5" })
	post("paid/refund?sku=1001", 200)
	post("early/release?sku=1001", 200)
	order("early")
	soon(t, "an order that was released before is given back", func() bool { return left() == "5" })
}
