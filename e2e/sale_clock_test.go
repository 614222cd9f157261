package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// clocked runs a gate whose machine's clock is wrong by so much.
func clocked(t *testing.T, wrong, path, bin string) *running {
	t.Helper()
	command := exec.Command(bin, "run", "--config", path)
	command.Env = []string{"SLUICE_CLOCK_AHEAD=" + wrong}
	return start(t, path, command)
}

func TestSchedule_InstancesWhoseClocksDifferOpenTogether(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), book(t, nil)
	bin := breakable(t)
	begins := time.Now().Add(30 * time.Minute) // until both are there
	const stock = "stock = { 1001 = 1000000 }"
	settings := strings.Join([]string{listeners + `server.shutdown_delay = "0s"`, redisAt(r), boundless, shop.setting(),
		saleOf(begins, stock), reserveRoutes}, "\n")
	gates := []*running{clocked(t, "-200ms", file(t, settings), bin), clocked(t, "200ms", file(t, settings), bin)}
	for _, g := range gates {
		soon(t, "the stock is written", func() bool {
			s, _ := g.shows("/1001")
			return s.Closes != 0 && s.Phase == "waiting"
		})
	}
	later := begins
	begins = time.Now().Add(2 * time.Second).Truncate(time.Millisecond)
	for _, g := range gates {
		g.rewrite(g.change(saleOf(later, stock), saleOf(begins, stock)), true)
	}
	var opened [2]atomic.Int64
	stop := ordering(t, gates, func(c, status int, reason string) {
		switch {
		case status == 200:
			opened[c/2].CompareAndSwap(0, time.Now().UnixNano())
		case reason != "not_started":
			t.Errorf("before the start a client heard %d %s", status, reason)
		}
	})
	defer stop()
	soon(t, "both are open", func() bool { return opened[0].Load() != 0 && opened[1].Load() != 0 })
	for i := range opened {
		at := time.Unix(0, opened[i].Load())
		t.Logf("the first order of instance %d was answered %v after the start", i, at.Sub(begins))
		if at.Before(begins) {
			t.Errorf("instance %d opened %v early", i, begins.Sub(at))
		}
	}
}

func TestSchedule_InstanceWithAWrongClockStartsNoSaleAndReportsIt(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), book(t, nil)
	path := file(t, strings.Join([]string{listeners + `server.shutdown_delay = "0s"`, redisAt(r), boundless,
		shop.setting(), saleOf(time.Now().Add(-time.Minute)), reserveRoutes}, "\n"))
	ok(t, "stock", "set", "--config", path, "1001", "10")
	g := clocked(t, "30s", path, breakable(t))
	g.order("1001").must(t, 503, "paused")
	g.measures(t, "sluice_sale_clock_wrong 1", `sluice_sale_state{sale="rush",state="paused"} 1`)
	if status, text := g.peek("/readyz?verbose"); status != 200 ||
		!strings.Contains(text, "by more than 2s: no sale begins here") {
		t.Errorf("%d %s", status, text)
	}
	g.logs(t, "too far apart")
	if shop.booked() != 0 {
		t.Error("an order reached the shop")
	}
}

func TestFeedback_ShopThatReportsSoldOutGetsNoMoreOrders(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	shop := open(t, saysSoldOut)
	g := gate(t, redisAt(r), boundless, `stock.sold_out_ttl = "30s"`, shop.setting(),
		strings.Replace(reserveRoutes, `user = "$cookie_uid"`, "", 1))
	ok(t, "stock", "set", "--config", g.file, "1001", "10")
	first := &buyer{user: "7"}
	defer first.leave()
	if status, _ := first.buy(g.front); status != 409 {
		t.Fatalf("the first hears %d", status)
	}
	soon(t, "the units are back", func() bool { return ledgerOf(t, r, "1001") == account{10, 0, 0} })
	for i := range 20 {
		b := &buyer{user: fmt.Sprint(i)}
		if status, reason := b.buy(g.front); status != 409 || reason != "sold_out" {
			t.Errorf("%d %s", status, reason)
		}
		b.leave()
	}
	if n := shop.arrivals.Load(); n != 1 {
		t.Errorf("%d orders reached the shop", n)
	}
	g.measures(t, `sluice_shop_sold_out_total{order="held"} 1`)
}
