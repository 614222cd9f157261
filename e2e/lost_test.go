package e2e

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// Redis lists a SKU whose ledger is gone. Whatever an operator types names the one way back, and no other.
func TestLost_EveryCommandNamesTheWayBack(t *testing.T) {
	t.Parallel()
	const way = "sluice stock recover 1001 --total N --from FILE|settle|none --apply"
	r, shop := redistest.Start(t), book(t, nil)
	g := reserves(t, r, 10, shop.setting())
	if status, reason := (&buyer{user: "1", key: "first"}).buy(g.front); status != 200 {
		t.Fatal(status, reason)
	}
	soon(t, "it is sold", func() bool { return ledgerOf(t, r, "1001").sold == 1 })
	deletes("s")(r, g)
	for _, to := range [][]string{{"--config", g.file}, {"--admin", "http://" + g.admin}} {
		for _, words := range []string{
			"stock get 1001", "stock set 1001 10", "stock add 1001 1", "stock pause 1001", "stock resume 1001",
			"stock end 1001", "stock freeze 1001", "stock recover 1001 --from none", "reservation get --sku 1001 none",
			"reservation confirm --sku 1001 first", "reservation release --sku 1001 first",
			"reservation refund --sku 1001 first", "stock recover 1001 --from none --apply",
		} {
			if s := run(t, "", append(strings.Fields(words), to...)...); s.code == 0 || !strings.Contains(s.complaint, way) ||
				strings.Contains(s.complaint, "stock set") {
				t.Errorf("%s %s: exit code %d: %s", words, to[0], s.code, s.complaint)
			}
		}
		wants(t, ok(t, slices.Concat([]string{"stock", "list"}, to)...), way)
	}
	text, err := exec.Command(binary, "check", "--online", g.file).CombinedOutput()
	if err == nil || !strings.Contains(string(text), way) {
		t.Errorf("check --online: %v\n%s", err, text)
	}
	g.terminate()
	g = g.again(t)
	if status, reason := (&buyer{user: "2"}).buy(g.front); status != 503 || reason != "stock_error" {
		t.Errorf("an order after a restart: %d %s", status, reason)
	}
	if text := g.ask("GET", "/.sluice/orders/first?sku=1001").body; !strings.Contains(text, "stock_error") {
		t.Errorf("the state of an order that was placed: %s", text)
	}
	soon(t, "readiness says so", func() bool { return strings.Contains(g.readiness(), "WARN ledger: \"1001\"") })
	wants(t, g.readiness(), way)
}

// All instances died without a state folder, and Redis is empty: nothing remembers the SKU. The messages still lead to
// the orders that the shop has.
func TestLost_MessagesAloneSellNoUnitTwice(t *testing.T) {
	t.Parallel()
	const units = 10
	r, shop := redistest.Start(t), book(t, nil)
	addresses, front := fixed(t)
	g := reserves(t, r, units, addresses, shop.setting())
	_, end := shopping(units/2, 4, 1, []string{front})
	end()
	if shop.booked() != units/2 {
		t.Fatalf("%d orders at the shop, want %d", shop.booked(), units/2)
	}
	g.die()
	r.Client.FlushAll(t.Context())
	g = g.again(t)
	s := run(t, "", "stock", "get", "--config", g.file, "1001")
	if s.code == 0 {
		t.Fatal("there is a ledger")
	}
	if s := follow(t, s.complaint, g.file, units, shop.export(t)); s.code != 0 {
		t.Fatalf("exit code %d: %s", s.code, s.complaint)
	}
	_, end = shopping(3*units, 4, 1, []string{front})
	end()
	soon(t, "all is sold and decided", func() bool {
		a := ledgerOf(t, r, "1001")
		return a.held == 0 && a.sold == units
	})
	if shop.booked() != units {
		t.Errorf("%d orders at the shop for %d units", shop.booked(), units)
	}
	shop.audit(t)
}
