package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/redistest"
)

// allSold waits until a user hears that all units are sold. Before, an instance that has not heard of the last
// confirmation may say that it is undecided.
func allSold(t *testing.T, front, user string) {
	t.Helper()
	soon(t, "all units are sold", func() bool {
		status, reason := (&buyer{user: user}).buy(front)
		if heard := fmt.Sprint(status, " ", reason); heard != "409 sold_out" && heard != "429 undecided" {
			t.Fatalf("%s hears %s", user, heard)
		}
		return reason == "sold_out"
	})
}

func TestReserve_ReleasedUnitIsBuyableOnEveryInstance(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), book(t, nil)
	one := reserves(t, r, 1, shop.setting(), `stock.sold_out_ttl = "1h"`) // time opens nothing
	two := reserves(t, r, 0, shop.setting(), `stock.sold_out_ttl = "1h"`)
	first := &buyer{user: "1", key: "first"}
	if status, reason := first.buy(one.front); status != 200 {
		t.Fatal(status, reason)
	}
	soon(t, "it is sold", func() bool { return ledgerOf(t, r, "1001").sold == 1 })
	for i, front := range []string{one.front, two.front} {
		allSold(t, front, fmt.Sprint("late-", i))
	}
	// 50 at once, from the API of either instance and from the command line: one unit comes back.
	var all sync.WaitGroup
	var done atomic.Int64
	for i := range 50 {
		all.Go(func() {
			if i%10 == 0 {
				if s := run(t, "", "reservation", "refund", "--config", one.file, "--sku", "1001", "first"); s.code == 0 {
					done.Add(1)
				} else {
					t.Errorf("exit code %d: %s", s.code, s.complaint)
				}
				return
			}
			a := []*running{one, two}[i%2].control("POST", "/api/v1/reservations/first/refund?sku=1001", "")
			if a.must(t, 200, ""); a.status == 200 {
				done.Add(1)
			}
		})
	}
	all.Wait()
	if a := ledgerOf(t, r, "1001"); a != (account{1, 0, 0}) || done.Load() != 50 {
		t.Fatalf("%d of 50 refunds were taken; ledger %+v", done.Load(), a)
	}
	next := &buyer{}
	took := soon(t, "the other instance sells it", func() bool {
		next.user += "x"
		status, _ := next.buy(two.front)
		return status == 200
	})
	t.Logf("buyable on the other instance %v after the last refund was answered", took)
	// Until its order is confirmed the unit may come back, and others hear undecided.
	soon(t, "it is sold again", func() bool { return ledgerOf(t, r, "1001") == account{1, 0, 1} })
	allSold(t, one.front, "last")
}

func TestOrderState_ClientLearnsItsOrdersState(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	r, shop := redistest.Start(t), book(t, func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}
		return n == 1
	})
	g := reserves(t, r, 5, shop.setting(), `upstream.response_header_timeout = "300ms"`)
	b := &buyer{user: "7", key: "my/own \"key\""}
	b.key = strings.ReplaceAll(b.key, " ", "_")
	if status, reason := b.buy(g.front); status != 504 || reason != "upstream_timeout" {
		t.Fatal(status, reason)
	}
	state := func() string {
		return g.ask("GET", "/.sluice/orders/my%2Fown_%22key%22?sku=1001").body
	}
	soon(t, "the resolver has asked the shop", func() bool { return strings.Contains(state(), `"state":"sold"`) })
	if status, reason := b.buy(g.front); status != 200 || reason != "confirmed" {
		t.Errorf("the same order again: %d %s", status, reason)
	}
	if text := g.ask("GET", "/.sluice/orders/other?sku=1001").body; !strings.Contains(text, `"state":"none"`) {
		t.Errorf("an unknown serial: %s", text)
	}
	shop.audit(t)
}
