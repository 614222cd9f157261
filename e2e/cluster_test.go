package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// stockAll gives each of so many SKUs, from 1001 on, its units.
func stockAll(t *testing.T, o redisconn.Options, skus, units int) {
	t.Helper()
	o.PoolSize, o.ConnectTimeout, o.Timeout, o.BreakerErrors, o.BreakerPause = 4, long, long, 100, time.Second
	r, err := ledger.NewStore(ledger.StoreOptions{Name: "shop", Options: o, Events: 10_000, Visitor: true,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range skus {
		if _, err := r.SetTotal(t.Context(), strconv.Itoa(1001+i), int64(units), 1); err != nil {
			t.Fatal(err)
		}
	}
}

// shopping lets shoppers, one after the other in each of so many lines, each want a SKU of its own until they have an
// answer that is final: a 200, or sold out.
func shopping(shoppers, lines, skus int, fronts []string) (served *atomic.Int64, end func()) {
	return shoppingFrom(0, shoppers, lines, skus, fronts)
}

// shoppingFrom is shopping whose first shopper has a number.
func shoppingFrom(first, shoppers, lines, skus int, fronts []string) (served *atomic.Int64, end func()) {
	served = &atomic.Int64{}
	var all sync.WaitGroup
	stop := make(chan struct{})
	for line := range lines {
		all.Go(func() {
			b := &buyer{}
			defer b.leave()
			for u := first + line; u < first+shoppers; u += lines {
				b.user, b.key, b.sku = strconv.Itoa(u), fmt.Sprintf("k%d", u), strconv.Itoa(1001+u%skus)
				if b.settle(fronts[u%len(fronts)], stop) {
					served.Add(1)
				}
			}
		})
	}
	return served, func() {
		limit := time.AfterFunc(2*long, func() { close(stop) })
		all.Wait()
		limit.Stop()
	}
}

// settle asks until the answer is final, and reports whether it was an order.
func (b *buyer) settle(front string, stop <-chan struct{}) bool {
	for {
		status, reason := b.buy(front)
		switch {
		case status == 200:
			return true
		case reason == "released":
			b.key += "-again"
		case reason == "sold_out", reason == "duplicate", reason == "key_reused":
			return false
		}
		select {
		case <-stop:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// fields reads a SKU's ledger on whatever runs it.
func fields(c redis.UniversalClient, sku string) map[string]string {
	all, _ := c.HGetAll(context.Background(), "sluice:shop:{"+sku+"}:s").Result()
	return all
}

// reckon holds every ledger against the shop: nothing is sold twice, and what is not frozen balances to the unit.
func reckon(t *testing.T, c redis.UniversalClient, shop *bookshop, skus, units int) {
	t.Helper()
	frozen := 0
	for i := range skus {
		sku := strconv.Itoa(1001 + i)
		f := fields(c, sku)
		// leases are long
		for end := time.Now().Add(4 * long); f["state"] != "frozen" && f["held"] != "0"; f = fields(c, sku) {
			if time.Now().After(end) {
				t.Fatalf("%s is never decided: %v", sku, f)
			}
			time.Sleep(pause) // between two looks
		}
		shop.mu.Lock()
		booked := shop.sold[sku]
		shop.mu.Unlock()
		if booked > units {
			t.Errorf("%s: %d orders for %d units", sku, booked, units)
		}
		if f["state"] == "frozen" { // a fail-over may lose what no replica had: then nothing is sold until a reconciliation
			frozen++
			t.Logf("%s is frozen: %s, sold %s, %d orders at the shop", sku, f["why"], f["sold"], booked)
			continue
		}
		if f["sold"] != strconv.Itoa(booked) || f["total"] != strconv.Itoa(units) {
			t.Errorf("%s: ledger %v, %d orders at the shop", sku, f, booked)
		}
	}
	t.Logf("%d of %d SKUs were frozen by a lost tail, %d orders", frozen, skus, shop.booked())
	shop.audit(t)
}

func TestCluster_SellsOnThroughMigrationAndFailOver(t *testing.T) {
	testkit.Nightly(t, "it runs a cluster of Redis, and long")
	t.Parallel()
	const skus, units, shoppers = 200, 100, 20_000
	nodes, shop := redistest.Cluster(t, 3, 1), book(t, nil)
	client := nodes.Client()
	stockAll(t, redisconn.Options{Topology: redisconn.Cluster, Addresses: nodes.Addrs()}, skus, units)
	settings := []string{
		"stock.source = \"redis\"\nstock.redis.addresses = " + quoted(nodes.Addrs()...),
		boundless, shop.setting(), `stock.reserve.reservation_ttl = "2s"`, reserveRoutes,
	}
	one, two := gate(t, settings...), gate(t, settings...)
	// The first half may have bought before a slot has moved: a quarter comes after that, another one after the death.
	fronts := []string{one.front, two.front}
	first, endFirst := shopping(shoppers/2, 40, skus, fronts)
	moved, dead := skuOn(nodes, 0, skus), skuOn(nodes, 1, skus)
	inTime(t, 4*long, "a quarter is sold", func() bool { return first.Load() > int64(shoppers/4) })
	slot := redistest.Slot(redisconn.Tag("{" + moved + "}"))
	nodes.Move(slot, nodes.Masters[2], nil)
	before := fields(client, moved)["sold"]
	second, endSecond := shoppingFrom(shoppers/2, shoppers/4, 40, skus, fronts)
	took := soon(t, "the SKU that has moved is sold on", func() bool { return fields(client, moved)["sold"] != before })
	t.Logf("a SKU that has moved sells again after %v", took)

	soon(t, "its replica is in step", func() bool {
		n, err := nodes.Masters[1].Client.Wait(t.Context(), 1, time.Second).Result()
		return err == nil && n == 1
	})
	before = fields(client, dead)["sold"]
	start := time.Now()
	nodes.Masters[1].Kill()
	third, endThird := shoppingFrom(shoppers*3/4, shoppers/4, 40, skus, fronts)
	next := nodes.Successor(0)
	elected := time.Since(start)
	soon(t, "the SKUs of the dead master are sold on", func() bool {
		n, _ := next.Client.HGet(t.Context(), "sluice:shop:{"+dead+"}:s", "sold").Result()
		state, _ := next.Client.HGet(t.Context(), "sluice:shop:{"+dead+"}:s", "state").Result()
		return n != before && n != "" || state == "frozen"
	})
	t.Logf("elected after %v, sold again %v later", elected, time.Since(start)-elected)
	endFirst()
	endSecond()
	endThird()
	reckon(t, client, shop, skus, units)
	if n, served := int64(shop.booked()), first.Load()+second.Load()+third.Load(); served > n {
		t.Errorf("%d shoppers were told of %d orders", served, n)
	}
}

// skuOn is the last SKU that a master had at the beginning.
func skuOn(nodes *redistest.Nodes, master, skus int) (sku string) {
	for i := range skus {
		if s := strconv.Itoa(1001 + i); redistest.Slot(redisconn.Tag("{"+s+"}"))*len(nodes.Masters)/16384 == master {
			sku = s
		}
	}
	return sku
}
