package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// The replicas hear nothing of the last sales, and one of them becomes the master.
func TestFailOver_LostTailIsReconciledWithTheShop(t *testing.T) {
	testkit.Nightly(t, "it waits for sentinels and for orders of a slow shop")
	t.Parallel()
	const units, shoppers = 1_500, 1_700
	var takes atomic.Int64 // how long the shop takes for an order
	takes.Store(int64(10 * time.Millisecond))
	slow := func(int, http.ResponseWriter, *http.Request) bool {
		time.Sleep(time.Duration(takes.Load())) // the shop's work
		return false
	}
	w, shop := redistest.Sentinel(t), book(t, slow)
	stockAll(t, redisconn.Options{Topology: redisconn.Sentinel, Addresses: w.Addrs(), MasterName: w.Name}, 1, units)
	limits := strings.Replace(boundless, "max_in_flight = 2000\n",
		"max_in_flight = 2\nlimits.concurrency.max_queue = 2000\nlimits.concurrency.queue_timeout = \"1s\"\n", 1)
	settings := []string{
		"stock.source = \"redis\"\nstock.redis.addresses = " + quoted(w.Addrs()...) + "\nstock.redis.master_name = " +
			strconv.Quote(w.Name),
		limits, shop.setting(), `stock.reserve.reservation_ttl = "2s"`, reserveRoutes,
	}
	one, two := gate(t, settings...), gate(t, settings...)
	_, end := shopping(shoppers, 60, 1, []string{one.front, two.front})
	soon(t, "a quarter is sold", func() bool { return shop.booked() > units/4 })

	takes.Store(int64(200 * time.Millisecond)) // a part of the sale is left for what no replica knows
	old := w.Master()
	release := w.HoldReplicas(old)
	cut := shop.booked()
	takes.Store(int64(10 * time.Millisecond))
	soon(t, "more is sold that no replica knows", func() bool { return shop.booked() > cut+units/4 })
	old.Kill()
	lost := shop.booked() - cut
	release()
	next := w.Successor(old)
	had, _ := strconv.Atoi(fields(next.Client, "1001")["sold"])
	start := time.Now()
	soon(t, "all is sold and decided", func() bool {
		f := fields(next.Client, "1001")
		return f["sold"] == strconv.Itoa(units) && f["held"] == "0"
	})
	t.Logf("%d orders after the cut; the new master knew of %d sold, the shop of %d; sold out and decided %v later", lost,
		had, cut+lost, time.Since(start))
	end()
	if had >= cut+lost {
		t.Error("nothing was lost: the test says nothing")
	}
	if n := shop.booked(); n != units {
		t.Errorf("%d orders at the shop for %d units", n, units)
	}
	soon(t, "it is noticed", func() bool {
		return strings.Contains(one.log.String()+two.log.String(), "ledger lost what it had said")
	})
	shop.audit(t)
}
