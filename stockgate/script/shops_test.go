package script

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/testkit"
)

// shop is one that a preset is for: its keys, and its own backend's decision, which runs beside Sluice.
type shop struct {
	def   Definition
	sku   string
	stock func(t testing.TB, c *redis.Client, units int64)
	left  func(t testing.TB, c *redis.Client) int64
	buy   func(t testing.TB, c *redis.Client, user string) bool // one unit
}

var background = context.Background()

// set makes a stock that is a string.
func set(keys ...string) func(testing.TB, *redis.Client, int64) {
	return func(t testing.TB, c *redis.Client, units int64) {
		for _, key := range keys {
			check(t, c.Set(background, key, units, 0).Err())
		}
	}
}

func get(key string) func(testing.TB, *redis.Client) int64 {
	return func(t testing.TB, c *redis.Client) int64 {
		n, err := c.Get(background, key).Int64()
		return number(t, n, err)
	}
}

// script is a shop's own: it buys where it returns want.
func bought(text string, want int64, keys []string, args func(user string) []any) func(testing.TB, *redis.Client,
	string) bool {
	return func(t testing.TB, c *redis.Client, user string) bool {
		n, err := c.Eval(background, text, keys, args(user)...).Int64()
		return number(t, n, err) == want
	}
}

// hash is a stock of a total and what is sold of it.
func hash(key, total, sold string, more ...any) (func(testing.TB, *redis.Client, int64),
	func(testing.TB, *redis.Client) int64) {
	return func(t testing.TB, c *redis.Client, units int64) {
			check(t, c.HSet(background, key, append([]any{total, units, sold, 0}, more...)...).Err())
		}, func(t testing.TB, c *redis.Client) int64 {
			a, err1 := c.HGet(background, key, total).Int64()
			b, err2 := c.HGet(background, key, sold).Int64()
			return number(t, a, err1) - number(t, b, err2)
		}
}

func one(string) []any         { return []any{1} }
func userOf(user string) []any { return []any{user} }

// shops is one for each preset. Their keys carry tags, as on a cluster.
func shops() []shop {
	return []shop{hashOrderedShop(), hashBoughtShop(), counterShop(), counterUsersShop(), inStockShop(),
		inStockScriptShop(),
		watchShop(), lockShop(), listShop(), variantsShop()}
}

func shopOf(preset string) shop {
	for _, s := range shops() {
		if s.def.Preset == preset {
			return s
		}
	}
	panic("BUG: no shop for " + preset)
}

func hashOrderedShop() shop {
	s := shop{def: Definition{Preset: "hash_ordered", Keys: []string{"goods:{$sku}"}}, sku: "1001"}
	s.stock, s.left = hash("goods:{1001}", "total", "ordered")
	s.buy = bought(`
		local has = redis.call('hmget', KEYS[1], 'total', 'ordered')
		if tonumber(has[1]) >= tonumber(has[2]) + tonumber(ARGV[1]) then
			redis.call('hincrby', KEYS[1], 'ordered', ARGV[1])
			return tonumber(ARGV[1])
		end
		return 0`, 1, []string{"goods:{1001}"}, one)
	return s
}

func hashBoughtShop() shop {
	s := shop{def: Definition{Preset: "hash_bought", Keys: []string{"goods:{$sku}", "order_list:{$sku}"},
		Args: []string{"$quantity", "goods_count", "goods_bought_num", "goods_status", "1,3", "$user", "$sku",
			"$time"}}, sku: "1001"}
	s.stock, s.left = hash("goods:{1001}", "goods_count", "goods_bought_num", "goods_status", 1)
	s.buy = bought(`
		local g = redis.call('hmget', KEYS[1], 'goods_status', 'goods_count', 'goods_bought_num')
		if g[1] ~= '1' then return 0 end
		if g[2] - g[3] < 1 then return 0 end
		redis.call('hincrby', KEYS[1], 'goods_bought_num', 1)
		redis.call('lpush', KEYS[2], cjson.encode({uid = ARGV[1], buy_num = 1}))
		return 1`, 1, []string{"goods:{1001}", "order_list:{1001}"}, userOf)
	return s
}

const counted = `
	local n = redis.call('get', KEYS[1])
	if not n then return -1 end
	if tonumber(n) < tonumber(ARGV[1]) then return 0 end
	redis.call('decrby', KEYS[1], ARGV[1])
	return 1`

func counterShop() shop {
	return shop{
		def: Definition{Preset: "counter_codes", Keys: []string{"seckill:{$sku}:stock"}}, sku: "1001",
		stock: set("seckill:{1001}:stock"), left: get("seckill:{1001}:stock"),
		buy: bought(counted, 1, []string{"seckill:{1001}:stock"}, one),
	}
}

func counterUsersShop() shop {
	const stock, users = "{1001}:{88}:stock", "{1001}:{88}:uids"
	return shop{
		def: Definition{Preset: "counter_users", Keys: []string{"{$sku_1}:{$sku_2}:stock",
			"{$sku_1}:{$sku_2}:uids"}}, sku: "1001:88",
		stock: set(stock), left: get(stock),
		buy: bought(`
			if redis.call('sismember', KEYS[2], ARGV[1]) == 1 then return 0 end
			if tonumber(redis.call('get', KEYS[1])) <= 0 then return -1 end
			redis.call('decr', KEYS[1])
			redis.call('sadd', KEYS[2], ARGV[1])
			return 1`, 1, []string{stock, users}, userOf),
	}
}

// The shop's own code deducts, undoes what went below zero, and then marks the order.
func inStockShop() shop {
	const key = "iphone:{1001}"
	return shop{
		def: Definition{Preset: "hash_instock", Keys: []string{"iphone:{$sku}", "mark:{$sku}:$serial"}}, sku: "1001",
		stock: func(t testing.TB, c *redis.Client, units int64) {
			check(t, c.HSet(background, key, "inStock", units).Err())
		},
		left: func(t testing.TB, c *redis.Client) int64 {
			n, err := c.HGet(background, key, "inStock").Int64()
			return number(t, n, err)
		},
		buy: func(t testing.TB, c *redis.Client, user string) bool {
			n, err := c.HIncrBy(background, key, "inStock", -1).Result()
			if number(t, n, err) >= 0 {
				return c.SetNX(background, "mark:{1001}:shop-"+user, 1, time.Hour).Val()
			}
			check(t, c.HIncrBy(background, key, "inStock", 1).Err())
			return false
		},
	}
}

// This shop does the same in one script.
func inStockScriptShop() shop {
	s := inStockShop()
	s.def.Preset = "hash_instock_script"
	s.buy = func(t testing.TB, c *redis.Client, user string) bool {
		return bought(`
			if redis.call('exists', KEYS[2]) == 1 then return 2 end
			if redis.call('hincrby', KEYS[1], 'inStock', -1) < 0 then
				redis.call('hincrby', KEYS[1], 'inStock', 1)
				return 0
			end
			redis.call('set', KEYS[2], 'shop', 'ex', 3600)
			return 1`, 1, []string{"iphone:{1001}", "mark:{1001}:shop-" + user}, one)(t, c, user)
	}
	return s
}

func watchShop() shop {
	const key = "seckill:{1001}:stock"
	return shop{
		def: Definition{Preset: "watch", Keys: []string{"seckill:{$sku}:stock"}}, sku: "1001",
		stock: set(key), left: get(key),
		buy: func(t testing.TB, c *redis.Client, user string) (done bool) {
			for range 1000 { // until no other writer was faster
				err := c.Watch(background, func(tx *redis.Tx) error {
					n, err := tx.Get(background, key).Int64()
					if number(t, n, err) < 1 {
						return nil
					}
					_, err = tx.TxPipelined(background, func(p redis.Pipeliner) error { return p.Decr(background, key).Err() })
					done = err == nil
					return err
				}, key)
				if err == nil {
					return done
				}
			}
			return false
		},
	}
}

const (
	lockedStock = "seckill:{1001}:stock"
	lockKey     = "seckill:{1001}:lock"
)

// The shop's own code reads and writes in two steps while it holds the lock.
func lockShop() shop {
	return shop{
		def: Definition{Preset: "lock", Keys: []string{"seckill:{$sku}:stock", "seckill:{$sku}:lock"}}, sku: "1001",
		stock: set(lockedStock), left: get(lockedStock),
		buy: func(t testing.TB, c *redis.Client, user string) bool {
			token := "shop-" + user
			testkit.Eventually(t, "the lock is free",
				func() bool { return c.SetNX(background, lockKey, token, time.Minute).Val() })
			n, err := c.Get(background, lockedStock).Int64()
			done := number(t, n, err) > 0
			if done {
				check(t, c.Set(background, lockedStock, n-1, 0).Err())
			}
			check(t, c.Eval(background,
				`if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end return 1`,
				[]string{lockKey}, token).Err())
			return done
		},
	}
}

func listShop() shop {
	const list, users = "units:{1001}", "bought:{1001}"
	return shop{
		def: Definition{Preset: "list_users", Keys: []string{"units:{$sku}", "bought:{$sku}"}}, sku: "1001",
		stock: func(t testing.TB, c *redis.Client, units int64) {
			for i := range units {
				check(t, c.RPush(background, list, fmt.Sprintf("unit-%d", i)).Err())
			}
		},
		left: func(t testing.TB, c *redis.Client) int64 {
			n, err := c.LLen(background, list).Result()
			return number(t, n, err)
		},
		buy: bought(`
			if redis.call('sismember', KEYS[2], ARGV[1]) == 1 then return 0 end
			if not redis.call('lpop', KEYS[1]) then return -1 end
			redis.call('sadd', KEYS[2], ARGV[1])
			return 1`, 1, []string{list, users}, userOf),
	}
}

func variantsShop() shop {
	const variant, product = "stock:{1001}:red", "stock:{1001}"
	return shop{
		def: Definition{Preset: "variants", Keys: []string{"stock:{$sku_1}:$sku_2", "stock:{$sku_1}"}}, sku: "1001:red",
		stock: set(variant, product), left: get(variant),
		buy: bought(strings.Replace(counted, "return 1", "redis.call('decrby', KEYS[2], ARGV[1]) return 1", 1), 1,
			[]string{variant, product}, one),
	}
}
