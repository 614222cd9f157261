package gateway

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
)

// mirroring are two gates over one Redis, whose ledgers are shown in the shop's own keys.
func mirroring(t *testing.T, server *redistest.Server, units int64) (gates []*Gateway, c *config.Config) {
	c = storetest.Reserving(server.Addr)
	c.Stock.Reserve.WriteBack, c.Stock.Reserve.MaxPerUser, c.Stock.Layout.Key = true, 0, "stock:$sku"
	c.Upstream.Targets = []string{"http://127.0.0.1:9"}
	for range 2 {
		g := gatewayOf(t, c)
		testkit.Eventually(t, "the ledger is open", func() bool { return g.Orders().Reserver() != nil })
		gates = append(gates, g)
	}
	if _, err := gates[0].Orders().Store.SetTotal(t.Context(), "1001", units, 0); err != nil {
		t.Fatal(err)
	}
	return gates, c
}

// A page that reads the shop's own key while two instances sell sees the stock fall, and never rise: no older number
// overwrites a newer one. When units come back it sees them.
func TestMirror_PagesSeeTheStockFallAndNeverRise(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	gates, _ := mirroring(t, server, 200)
	ctx, done := context.WithCancel(t.Context())
	var page sync.WaitGroup
	page.Go(func() {
		last := int64(200)
		for ctx.Err() == nil {
			n, err := strconv.ParseInt(server.Client.Get(context.Background(), "stock:1001").Val(), 10, 64)
			if err == nil && n > last {
				t.Errorf("the page saw %d, and %d before", n, last)
			}
			if err == nil {
				last = n
			}
		}
	})
	var buyers sync.WaitGroup
	serials := make(chan string, 200)
	for g := range 8 {
		buyers.Go(func() {
			for i := range 20 {
				in := ledger.Order{SKU: []byte("1001"), Key: []byte(fmt.Sprint(g, "-", i)), Quantity: 1}
				got := gates[g%2].Orders().Reserve(gates[g%2].now(), in)
				if got.Reason != reject.Admitted {
					t.Logf("order %d of buyer %d: %v", i, g, got.Reason)
					continue
				}
				serials <- got.Serial
			}
		})
	}
	buyers.Wait()
	free := func() int64 {
		s, ok, err := gates[0].Orders().Store.ReadStock(t.Context(), "1001")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return s.Free
	}
	shows := func(want int64) func() bool {
		return func() bool { return server.Client.Get(t.Context(), "stock:1001").Val() == fmt.Sprint(want) }
	}
	left := free() // 40, but for orders that a busy machine did not place
	testkit.Eventually(t, "the last order is shown", shows(left))
	done()
	page.Wait()
	for range 3 {
		gates[0].Orders().Settle(ledger.Order{SKU: []byte("1001")}, <-serials, metrics.OrderRejected)
	}
	testkit.Eventually(t, "the units that came back are shown", shows(left+3))
}

func TestMirror_ThatCouldNotBeWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Client.HSet(t.Context(), "stock:1001", "a", 1)
	gates, _ := mirroring(t, server, 5)
	gates[0].Orders().Reserve(gates[0].now(), ledger.Order{SKU: []byte("1001"), Key: []byte("a"), Quantity: 1})
	testkit.Eventually(t, "it fails", func() bool {
		all, err := gates[0].Metrics.Gather()
		for _, family := range all {
			for _, m := range family.GetMetric() {
				if family.GetName() == "sluice_ledger_mirror_writes_total" && m.GetLabel()[0].GetValue() == "failed" &&
					m.GetCounter().GetValue() > 0 {
					return true
				}
			}
		}
		return err != nil
	})
	server.Client.Del(t.Context(), "stock:1001")
	testkit.Eventually(t, "it is shown", func() bool { return server.Client.Get(t.Context(), "stock:1001").Val() == "4" })
}
