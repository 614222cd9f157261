package driver

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"

	"sluice/stockgate/link"
)

// onMasters lets a desk find out by itself that Redis is a cluster.
func onMasters(nodes *redistest.Nodes) func(*Options) {
	return func(o *Options) { o.Link.Addresses, o.Link.Topology = nodes.Addrs(), link.Auto }
}

// fillOf makes units of a SKU for a driver on any Redis.
func fillOf(t *testing.T, c redis.Cmdable, l Layout, sku string, units int64) {
	t.Helper()
	k, err := compileKeys(l, false)
	check(t, err)
	o := &order{sku: sku}
	key := k.stock.of(o)
	switch l.Driver {
	case hashOrdered, hashBought:
		check(t, c.HSet(background, key, l.TotalField, units, l.SoldField, 0).Err())
		if l.StatusField != "" {
			check(t, c.HSet(background, key, l.StatusField, 1).Err())
		}
	case hashInStock, hashInStockOnce:
		check(t, c.HSet(background, key, l.LeftField, units).Err())
	case listUsers:
		for i := range units {
			check(t, c.RPush(background, key, i).Err())
		}
	default:
		check(t, c.Set(background, key, units, 0).Err())
	}
}

// leftOf is what is left of a SKU.
func leftOf(t *testing.T, c redis.Cmdable, l Layout, sku string) int64 {
	t.Helper()
	n, err := leftAt(c, l, sku)
	return number(t, n, err)
}

func leftAt(c redis.Cmdable, l Layout, sku string) (int64, error) {
	k, err := compileKeys(l, false)
	if err != nil {
		return 0, err
	}
	key := k.stock.of(&order{sku: sku})
	switch l.Driver {
	case hashOrdered, hashBought:
		total, err1 := c.HGet(background, key, l.TotalField).Int64()
		sold, err2 := c.HGet(background, key, l.SoldField).Int64()
		return total - sold, errors.Join(err1, err2)
	case hashInStock, hashInStockOnce:
		return c.HGet(background, key, l.LeftField).Int64()
	case listUsers:
		return c.LLen(background, key).Result()
	}
	return c.Get(background, key).Int64()
}

// Whichever master has a SKU, each driver takes of it what there is, gives back, and knows an unknown one.
func TestDriversSellAllOverAClusterOfSeveralMasters(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	client := nodes.Client()
	for _, s := range shops() {
		t.Run(s.layout.Driver, func(t *testing.T) {
			d := desk(t, "", s.layout, onMasters(nodes))
			var skus []string
			for i := range 12 {
				skus = append(skus, strings.Replace(s.sku, "1001", fmt.Sprint(2001+i), 1))
				fillOf(t, client, s.layout, skus[i], 3)
			}
			var all sync.WaitGroup
			for i := range 12 * 5 {
				all.Go(func() {
					sku := skus[i%12]
					reason, serial := take(d, sku, fmt.Sprint("u", i), "", 1)
					switch {
					case reason == reject.Admitted:
						d.Settle([]byte(sku), serial, metrics.OrderConfirmed)
					case reason != reject.SoldOut && reason != reject.Concurrency:
						t.Errorf("%s: %s", sku, reason)
					}
				})
			}
			all.Wait()
			for _, sku := range skus {
				if left := leftOf(t, client, s.layout, sku); left != 0 {
					t.Errorf("%s: %d left", sku, left)
				}
			}
			if reason, _ := take(d, strings.Replace(s.sku, "1001", "none", 1), "7", "", 1); reason != reject.UnknownSKU {
				t.Errorf("an unknown one: %s", reason)
			}
		})
	}
}

// On a cluster that shows itself as such only when it is reached, keys that lie apart are refused with those that would
// work, and nothing is sent; the same keys on one server work.
func TestKeysApartAreRefusedOnAClusterThatWasNotConfiguredAsOne(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	for _, s := range shops() {
		if p, _ := promiseOf(s.layout.Driver); p.Cluster == oneKey {
			continue
		}
		d := desk(t, "", untagged(s.layout), onMasters(nodes))
		if err := d.Fit(t.Context()); !errors.Is(err, ErrApart) || !strings.Contains(err.Error(), "key = \"") || !strings.Contains(err.Error(), "{$sku") {
			t.Errorf("%s: %v", s.layout.Driver, err)
		}
		fillOf(t, nodes.Client(), untagged(s.layout), s.sku, 5)
		if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.StockError {
			t.Errorf("%s: %s", s.layout.Driver, reason)
		}
		if left := leftOf(t, nodes.Client(), untagged(s.layout), s.sku); left != 5 {
			t.Errorf("%s: %d left", s.layout.Driver, left)
		}
		one := redistest.Start(t)
		fillOf(t, one.Client, untagged(s.layout), s.sku, 5)
		d = desk(t, one.Addr, untagged(s.layout), func(o *Options) { o.Link.Topology = link.Auto })
		if err := d.Fit(t.Context()); err != nil {
			t.Errorf("%s on one server: %v", s.layout.Driver, err)
		}
		if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.Admitted {
			t.Errorf("%s on one server: %s", s.layout.Driver, reason)
		}
	}
}

// While a slot moves and after it has moved, nothing is sold twice, and what the shop refuses comes back where the key is
// now.
func TestDriversFollowASlotThatMovesInTheMiddleOfASale(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	client := nodes.Client()
	for i, s := range shops() {
		t.Run(s.layout.Driver, func(t *testing.T) {
			s.sku = strings.Replace(s.sku, "1001", fmt.Sprint(3001+i), 1) // a slot of its own
			d := desk(t, "", s.layout, onMasters(nodes))
			fillOf(t, client, s.layout, s.sku, 9)
			user := 0
			buy := func(drop bool) {
				user++
				reason, serial := take(d, s.sku, fmt.Sprint(user), "", 1)
				if reason != reject.Admitted {
					t.Errorf("order %d: %s", user, reason)
				}
				if drop {
					d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
				} else {
					d.Settle([]byte(s.sku), serial, metrics.OrderConfirmed)
				}
			}
			buy(false)
			slot := link.Slot(d.keysOf(t, s.sku))
			to := nodes.Masters[0]
			if nodes.Owner(slot) == to {
				to = nodes.Masters[1]
			}
			nodes.Move(slot, to, nil)
			buy(false)
			buy(true)
			is := func(want int64) func() bool { // once the masters agree on who has it
				return func() bool { left, err := leftAt(client, s.layout, s.sku); return err == nil && left == want }
			}
			eventually(t, "the unit is back", is(7))
			buy(false)
			eventually(t, "the last one is sold", is(6))
		})
	}
}
