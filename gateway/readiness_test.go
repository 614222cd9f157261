package gateway

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/stockgate"
	"sluice/stockgate/ledger"
	"sluice/stockgate/sale"
)

// Before Redis has answered its clock is not known: no difference is told.
func TestReadiness_ClockOfARedisThatHasNotAnsweredIsNotTold(t *testing.T) {
	schedule, err := sale.New(sale.Options{Now: func() int64 { return time.Now().UnixNano() }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &Gateway{redis: &stockgate.Redis{}, schedule: schedule}
	if says, health := g.clockCheck(); says != "not compared" || health != admin.Healthy {
		t.Errorf("%v: %s", health, says)
	}
}

// While no route reserves, a ledger that is gone rejects no order, and no command makes it again.
func TestReadiness_LedgerCountsWhileARouteReserves(t *testing.T) {
	t.Parallel()
	g, file := steer(t)
	sku := "1001"
	g.Orders().lost.Store(&sku)
	if !g.Status().Degraded {
		t.Fatalf("%+v: want that the ledger of %s is told to be gone", g.Status().Checks, sku)
	}
	*file = strings.Replace(steered, `"reserve"`, `"limit"`, 1)
	if _, err := g.controller.Reload(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	ready := httptest.NewRecorder()
	g.ops.ServeHTTP(ready, httptest.NewRequest("GET", "/readyz", nil))
	if text := ready.Body.String(); g.Status().Degraded || ready.Code != 200 || strings.Contains(text, "ledger") {
		t.Errorf("%+v\n%s", g.Status().Checks, text)
	}
}

// probed is what the check of this name says now.
func probed(t *testing.T, g *Gateway, name string) (detail string, health admin.Health) {
	t.Helper()
	for _, c := range g.Checks() {
		if c.Name == name {
			return c.Probe()
		}
	}
	t.Fatalf("there is no check %q", name)
	return "", health
}

// Redis was emptied while no instance ran, or while the successor of a take-over started: nothing tells the new one
// which ledgers there were. It answers 404 for each SKU, so it says why.
func TestReadiness_RedisWithoutAnyLedgerIsTold(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	c := storetest.Reserving(redis.Addr)
	c.Upstream.Targets = []string{"http://127.0.0.1:1"}
	g := testkit.Must[*Gateway](t)(New(c, Options{}, slog.New(slog.DiscardHandler)))
	reaches := func(g *Gateway, want admin.Health) {
		t.Helper()
		testkit.Eventually(t, fmt.Sprint("the ledger's health is ", want), func() bool {
			g.Orders().NoteUnknown()
			_, health := probed(t, g, "ledger")
			return health == want
		})
	}
	testkit.Must[ledger.Stock](t)(g.Orders().Store.SetTotal(t.Context(), "1001", 3, 0))
	reaches(g, admin.Healthy)
	g.Close()
	testkit.Check(t, redis.Client.FlushAll(t.Context()).Err())
	successor := gatewayOf(t, c)
	reaches(successor, admin.Degraded)
	if detail, _ := probed(t, successor, "ledger"); !strings.Contains(detail, "sluice stock recover") {
		t.Error(detail)
	}
	testkit.Must[ledger.Stock](t)(successor.Orders().Store.SetTotal(t.Context(), "1001", 3, 0))
	reaches(successor, admin.Healthy)
}

func TestReadiness_RedisWithoutAnyStockKeyIsTold(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	c := storetest.Reserving(redis.Addr)
	c.Upstream.Targets, c.Routes[0].Gate, c.Routes[0].Quantity = []string{"http://127.0.0.1:1"}, "check", ""
	g := gatewayOf(t, c)
	ask := func(n int) {
		for i := range n {
			g.Stock.Enter(g.now(), fmt.Append(nil, 1001+i), nil)
		}
	}
	ask(allMissing - 1)
	testkit.Eventually(t, "all are read", func() bool { return g.Stock.Missing() == allMissing-1 })
	_, health := probed(t, g, "redis")
	testkit.Want(t, "after a client's mistakes", health, admin.Healthy)
	ask(allMissing)
	testkit.Eventually(t, "it is told that none was found", func() bool {
		detail, health := probed(t, g, "redis")
		return health == admin.Degraded && strings.Contains(detail, "found no stock key")
	})
	c.Stock.UnknownSKU = "allow"
	_, health = probed(t, g, "redis")
	testkit.Want(t, "where SKUs without a key are forwarded", health, admin.Healthy)
	c.Stock.UnknownSKU = "reject"
	testkit.Check(t, redis.Client.Set(t.Context(), "seckill:stock:2001", 7, 0).Err())
	testkit.Eventually(t, "one was found", func() bool {
		g.Stock.Enter(g.now(), []byte("2001"), nil)
		_, health := probed(t, g, "redis")
		return health == admin.Healthy
	})
}
