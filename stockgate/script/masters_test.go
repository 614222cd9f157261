package script

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"

	"sluice/stockgate/redisconn"
)

// onMasters lets a Reserver find out by itself that Redis is a cluster.
func onMasters(nodes *redistest.Nodes) func(*Options) {
	return func(o *Options) { o.Redis.Addresses, o.Redis.Topology = nodes.Addrs(), redisconn.Auto }
}

// fillOf makes units of a SKU for a preset on any Redis.
func fillOf(t *testing.T, c redis.Cmdable, d Definition, sku string, units int64) {
	t.Helper()
	key := compiled(t, d).Keys(sku)[0]
	switch d.Preset {
	case "hash_ordered":
		check(t, c.HSet(background, key, "total", units, "ordered", 0).Err())
	case "hash_bought":
		check(t, c.HSet(background, key, "goods_count", units, "goods_bought_num", 0, "goods_status", 1).Err())
	case "hash_instock", "hash_instock_script":
		check(t, c.HSet(background, key, "inStock", units).Err())
	case "list_users":
		for i := range units {
			check(t, c.RPush(background, key, i).Err())
		}
	default:
		check(t, c.Set(background, key, units, 0).Err())
	}
}

// leftOf is what is left of a SKU.
func leftOf(t *testing.T, c redis.Cmdable, d Definition, sku string) int64 {
	t.Helper()
	n, err := leftAt(c, d.Preset, compiled(t, d).Keys(sku)[0])
	return number(t, n, err)
}

func leftAt(c redis.Cmdable, preset, key string) (int64, error) {
	fields := map[string][2]string{"hash_ordered": {"total", "ordered"},
		"hash_bought": {"goods_count", "goods_bought_num"}}[preset]
	switch preset {
	case "hash_ordered", "hash_bought":
		total, err1 := c.HGet(background, key, fields[0]).Int64()
		sold, err2 := c.HGet(background, key, fields[1]).Int64()
		return total - sold, errors.Join(err1, err2)
	case "hash_instock", "hash_instock_script":
		return c.HGet(background, key, "inStock").Int64()
	case "list_users":
		return c.LLen(background, key).Result()
	}
	return c.Get(background, key).Int64()
}

// Whichever master has a SKU, each preset takes of it what there is, gives back, and knows an unknown one.
func TestPresets_SellAllOverAClusterOfSeveralMasters(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	client := nodes.Client()
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			d := reserver(t, "", s.def, onMasters(nodes))
			var skus []string
			for i := range 12 {
				skus = append(skus, strings.Replace(s.sku, "1001", fmt.Sprint(2001+i), 1))
				fillOf(t, client, s.def, skus[i], 3)
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
				if left := leftOf(t, client, s.def, sku); left != 0 {
					t.Errorf("%s: %d left", sku, left)
				}
			}
			if reason, _ := take(d, strings.Replace(s.sku, "1001", "none", 1), "7", "", 1); reason != reject.UnknownSKU {
				t.Errorf("an unknown one: %s", reason)
			}
		})
	}
}

// On a cluster that shows itself as such only when it is reached, keys that lie apart are rejected with those that
// would work, and nothing is sent; the same keys on one server work.
func TestFit_KeysApartAreRejectedOnAClusterThatWasNotConfiguredAsOne(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	for _, s := range shops() {
		if len(s.def.Keys) == 1 {
			continue
		}
		d := reserver(t, "", untagged(s.def), onMasters(nodes))
		if err := d.Fit(t.Context()); !errors.Is(err, ErrApart) || !strings.Contains(err.Error(), "keys[1] = \"") ||
			!strings.Contains(err.Error(), "{$sku") {
			t.Errorf("%s: %v", s.def.Preset, err)
		}
		fillOf(t, nodes.Client(), untagged(s.def), s.sku, 5)
		if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.StockError {
			t.Errorf("%s: %s", s.def.Preset, reason)
		}
		if left := leftOf(t, nodes.Client(), untagged(s.def), s.sku); left != 5 {
			t.Errorf("%s: %d left", s.def.Preset, left)
		}
		one := redistest.Start(t)
		fillOf(t, one.Client, untagged(s.def), s.sku, 5)
		d = reserver(t, one.Addr, untagged(s.def), func(o *Options) { o.Redis.Topology = redisconn.Auto })
		if err := d.Fit(t.Context()); err != nil {
			t.Errorf("%s on one server: %v", s.def.Preset, err)
		}
		if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.Admitted {
			t.Errorf("%s on one server: %s", s.def.Preset, reason)
		}
	}
}

// While a slot moves and after it has moved, nothing is sold twice, and what the shop rejects comes back where the key
// is now.
func TestPresets_FollowASlotThatMovesInTheMiddleOfASale(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	client := nodes.Client()
	for i, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			s.sku = strings.Replace(s.sku, "1001", fmt.Sprint(3001+i), 1) // a slot of its own
			d := reserver(t, "", s.def, onMasters(nodes))
			fillOf(t, client, s.def, s.sku, 9)
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
			slot := redistest.Slot(redisconn.Tag(d.script.Keys(s.sku)[0]))
			to := nodes.Masters[0]
			if nodes.Owner(slot) == to {
				to = nodes.Masters[1]
			}
			nodes.Move(slot, to, nil)
			buy(false)
			buy(true)
			is := func(want int64) func() bool { // once the masters agree on who has it
				return func() bool {
					left, err := leftAt(client, s.def.Preset, d.script.Keys(s.sku)[0])
					return err == nil && left == want
				}
			}
			testkit.Eventually(t, "the unit is back", is(7))
			buy(false)
			testkit.Eventually(t, "the last one is sold", is(6))
		})
	}
}

// untagged is d without the tags of its keys.
func untagged(d Definition) Definition {
	keys := make([]string, len(d.Keys))
	for i, text := range d.Keys {
		keys[i] = strings.NewReplacer("{", "", "}", "").Replace(text)
	}
	d.Keys = keys
	return d
}
