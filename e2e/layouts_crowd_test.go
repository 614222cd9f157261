package e2e

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
)

// ownScriptShop is a shop whose own program takes the units of 10 in Redis. Sluice reads the same keys.
type ownScriptShop struct {
	name, sku string
	layout    string   // settings of [stock.layout]
	fill      []string // ten units
	decide    decision
}

// decision takes a unit for a user, or reports that there is none for them.
type decision func(ctx context.Context, stock *redis.Client, user string) (bool, error)

// byScript decides by Lua that returns 1 for a unit that was taken.
func byScript(lua string, keys ...string) decision {
	return func(ctx context.Context, stock *redis.Client, user string) (bool, error) {
		n, err := stock.Eval(ctx, lua, keys, user).Int()
		return n == 1, err
	}
}

// byTransaction decides with WATCH and MULTI, and again when another order came between.
func byTransaction(key string) decision {
	return func(ctx context.Context, stock *redis.Client, _ string) (sold bool, err error) {
		for {
			err = stock.Watch(ctx, func(tx *redis.Tx) error {
				left, err := tx.Get(ctx, key).Int()
				if sold = left > 0; err != nil || !sold {
					return err
				}
				_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Decr(ctx, key); return nil })
				return err
			}, key)
			if !errors.Is(err, redis.TxFailedErr) {
				return sold && err == nil, err
			}
		}
	}
}

// byLock reads and writes while it holds a lock.
func byLock(key, lock string) decision {
	return func(ctx context.Context, stock *redis.Client, user string) (bool, error) {
		for {
			got, err := stock.SetNX(ctx, lock, user, 0).Result()
			if err != nil {
				return false, err
			}
			if got {
				break
			}
		}
		defer stock.Del(ctx, lock)
		left, err := stock.Get(ctx, key).Int()
		if err != nil || left < 1 {
			return false, err
		}
		return true, stock.Set(ctx, key, left-1, 0).Err()
	}
}

func ownScriptShops() []ownScriptShop {
	return []ownScriptShop{{
		name: "a list of units and the set of buyers", sku: "10",
		layout: `{ type = "list", key = "goods:$sku", users_key = "buyers:$sku" }`,
		fill:   []string{"RPUSH goods:10 1 2 3 4 5 6 7 8 9 10"},
		decide: byScript(`
			if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 or not redis.call('LPOP', KEYS[1]) then return 0 end
			redis.call('SADD', KEYS[2], ARGV[1])
			return 1`, "goods:10", "buyers:10"),
	}, {
		name: "a hash of total and ordered", sku: "10",
		layout: `{ type = "hash_sold", key = "goods:$sku", total_field = "total", sold_field = "ordered" }`,
		fill:   []string{"HSET goods:10 total 10 ordered 0"},
		decide: byScript(`
			local v = redis.call('HMGET', KEYS[1], 'total', 'ordered')
			if v[2] + 1 > tonumber(v[1]) then return 0 end
			redis.call('HINCRBY', KEYS[1], 'ordered', 1)
			return 1`, "goods:10"),
	}, {
		name: "a hash of count, bought and status", sku: "10",
		layout: `{ type = "hash_sold", key = "goods:$sku", total_field = "goods_count", ` +
			`sold_field = "goods_bought_num", status_field = "goods_status", status_open = ["1"] }`,
		fill: []string{"HSET goods:10 goods_count 10 goods_bought_num 0 goods_status 1"},
		decide: byScript(`
			local v = redis.call('HMGET', KEYS[1], 'goods_count', 'goods_bought_num', 'goods_status')
			if v[3] ~= '1' or v[2] + 1 > tonumber(v[1]) then return 0 end
			redis.call('HINCRBY', KEYS[1], 'goods_bought_num', 1)
			return 1`, "goods:10"),
	}, {
		name: "a counter and the buyers of an activity", sku: "10:88",
		layout: `{ type = "counter_users", key = "{$sku_1}:{$sku_2}:stock", users_key = "{$sku_1}:{$sku_2}:uids" }`,
		fill:   []string{"SET {10}:{88}:stock 10"},
		decide: byScript(unsoldAndNew, "{10}:{88}:stock", "{10}:{88}:uids"),
	}, {
		name: "a hash of what is left", sku: "10",
		layout: `{ type = "hash_left", key = "goods:$sku", left_field = "inStock" }`,
		fill:   []string{"HSET goods:10 inStock 10"},
		decide: byScript(`
			if tonumber(redis.call('HGET', KEYS[1], 'inStock')) < 1 then return 0 end
			redis.call('HINCRBY', KEYS[1], 'inStock', -1)
			return 1`, "goods:10"),
	}, {
		name: "a variant and its product", sku: "10:red",
		layout: `{ type = "counter", key = "stock:$sku_1:$sku_2" }`,
		fill:   []string{"SET stock:10:red 10", "SET stock:10 25"},
		decide: byScript(`
			if tonumber(redis.call('GET', KEYS[1])) < 1 then return 0 end
			redis.call('DECR', KEYS[1])
			redis.call('DECR', KEYS[2])
			return 1`, "stock:10:red", "stock:10"),
	}, {
		name: "a counter behind a lock", sku: "10", layout: `{ type = "counter", key = "stock:$sku" }`,
		fill: []string{"SET stock:10 10"}, decide: byLock("stock:10", "lock:10"),
	}, {
		name: "a counter that is watched", sku: "10", layout: `{ type = "counter", key = "stock:$sku" }`,
		fill: []string{"SET stock:10 10"}, decide: byTransaction("stock:10"),
	}}
}

// 500 people want ten units at once and insist until they hear that the SKU is sold out.
func TestLayouts_CrowdBuysWhatThereIsAndFewOrdersReachTheShop(t *testing.T) {
	for _, k := range ownScriptShops() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			stock := redistest.Start(t)
			var sold atomic.Int64
			shop := open(t, func(w http.ResponseWriter, r *http.Request) {
				user, err := r.Cookie("uid")
				if err != nil {
					t.Error(err)
					return
				}
				took, err := k.decide(context.Background(), stock.Client, user.Value)
				if err != nil {
					t.Error(err)
				}
				if took {
					sold.Add(1)
				} else {
					w.WriteHeader(http.StatusConflict)
				}
			})
			g := gate(t, redisAt(stock), boundless, shop.setting(), "stock.layout = "+k.layout, routes)
			does(t, stock.Client, k.fill...)
			var bought atomic.Int64
			var all sync.WaitGroup
			stop := make(chan struct{})
			for i := range 500 {
				all.Go(func() {
					b := &buyer{user: strconv.Itoa(i), sku: k.sku}
					defer b.leave()
					if b.settle(g.front, stop) {
						bought.Add(1)
					}
				})
			}
			all.Wait()
			if sold.Load() != 10 || bought.Load() != 10 || shop.arrivals.Load() > 30 {
				t.Errorf("%d sold, %d bought, %d orders reached the shop; want 10, 10, at most 30", sold.Load(), bought.Load(),
					shop.arrivals.Load())
			}
		})
	}
}
