package e2e

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
)

// layoutsFolder holds the configurations for well-known shops.
const layoutsFolder = root + "/examples/layouts"

// knownShop is a shop that decides by a script of its own, re-created here, on the keys that Sluice reads.
type knownShop struct {
	example string                                          // the configuration's name
	fill    string                                          // three units
	decide  string                                          // the script; 1 = sold
	keys    []string                                        // of the script
	order   func(user string) (method, target, head string) // what an order looks like
	form    string                                          // and its body
	users   bool                                            // a user buys once
	back    []string                                        // gives one unit back so that it can be bought again
}

// unsoldAndNew is the decision of most shops: is there a unit, is the user new, take it, note the user.
const unsoldAndNew = `
if tonumber(redis.call('GET', KEYS[1])) < 1 then return 0 end
if redis.call('SADD', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('DECR', KEYS[1])
return 1`

func knownShops() []knownShop {
	return []knownShop{{
		example: "hm-dianping", fill: "SET seckill:stock:10 3", decide: unsoldAndNew,
		keys: []string{"seckill:stock:10", "seckill:order:10"}, users: true,
		order: func(user string) (string, string, string) {
			return "POST", "/voucher-order/seckill/10", "X-User-Id: " + user
		},
		back: []string{"INCR seckill:stock:10"},
	}, {
		example: "miaosha", fill: "SET GoodsKey:gs10 3", keys: []string{"GoodsKey:gs10", "MiaoshaKey:go10"},
		decide: `
if redis.call('DECR', KEYS[1]) >= 0 then return 1 end
redis.call('SET', KEYS[2], 'true')
return 0`,
		order: func(string) (string, string, string) {
			return "POST", "/miaosha/a1/do_miaosha", "Content-Type: application/x-www-form-urlencoded"
		},
		form: "goodsId=10",
		back: []string{"SET GoodsKey:gs10 1", "DEL MiaoshaKey:go10"},
	}, {
		example: "newbee-mall", fill: "SET seckill_goods_stock:10 3", users: true,
		keys: []string{"seckill_goods_stock:10", "seckill_success_user_id:10"}, decide: downToMinusOne,
		order: func(user string) (string, string, string) {
			return "POST", "/seckillExecution/10/" + user + "/abc", "Accept: */*"
		},
		back: []string{"SET seckill_goods_stock:10 1"},
	}, {
		example: "gulimall", fill: "SET seckill:stock:c0de 3", keys: []string{"seckill:stock:c0de"},
		decide: `
local permits = redis.call('GET', KEYS[1])
if not permits or tonumber(permits) < 1 then return 0 end
redis.call('DECRBY', KEYS[1], 1)
return 1`,
		order: func(string) (string, string, string) { return "GET", "/kill?killId=1_10&key=c0de&num=1", "Accept: */*" },
		back:  []string{"INCRBY seckill:stock:c0de 1"},
	}, {
		example: "total-booked", fill: "HSET 10 Total 3 Booked 0", keys: []string{"10"},
		decide: `
local total, booked = unpack(redis.call('HMGET', KEYS[1], 'Total', 'Booked'))
if not total or tonumber(booked) + 1 > tonumber(total) then return 0 end
redis.call('HINCRBY', KEYS[1], 'Booked', 1)
return 1`,
		order: func(string) (string, string, string) { return "POST", "/goods/10/order", "Accept: */*" },
		back:  []string{"HINCRBY 10 Booked -1"},
	}, {
		example: "one-hash", fill: "HSET seckill:stocks 10 3 10_sold 0", keys: []string{"seckill:stocks"},
		decide: `
local total, sold = unpack(redis.call('HMGET', KEYS[1], '10', '10_sold'))
if tonumber(sold) + 1 > tonumber(total) then return 0 end
redis.call('HINCRBY', KEYS[1], '10_sold', 1)
return 1`,
		order: func(string) (string, string, string) { return "POST", "/goods/10/order", "Accept: */*" },
		back:  []string{"HINCRBY seckill:stocks 10_sold -1"},
	}, {
		example: "goods-and-activity", fill: "SET {10}:{88}:stock 3", users: true,
		keys: []string{"{10}:{88}:stock", "{10}:{88}:uids"}, decide: unsoldAndNew,
		order: func(user string) (string, string, string) {
			return "POST", "/activities/88/goods/10/order", "Cookie: uid=" + user
		},
		back: []string{"INCR {10}:{88}:stock"},
	}, {
		example: "list-of-units", fill: "RPUSH laravel_database_goods_store:10 1 1 1", users: true,
		keys: []string{"laravel_database_goods_store:10", "laravel_database_goods_users:10"},
		decide: `
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 0 end
if not redis.call('LPOP', KEYS[1]) then return 0 end
redis.call('SADD', KEYS[2], ARGV[1])
return 1`,
		order: func(user string) (string, string, string) { return "POST", "/goods/10/order", "Cookie: uid=" + user },
		back:  []string{"RPUSH laravel_database_goods_store:10 1"},
	}, {
		example: "stock-minus-locked", fill: "HSET goods:10 stock 4 locked 1 on yes", keys: []string{"goods:10"},
		decide: `
local stock, locked = unpack(redis.call('HMGET', KEYS[1], 'stock', 'locked'))
if tonumber(stock) - tonumber(locked) < 1 then return 0 end
redis.call('HINCRBY', KEYS[1], 'locked', 1)
return 1`,
		order: func(string) (string, string, string) { return "POST", "/goods/10/order", "Accept: */*" },
		back:  []string{"HINCRBY goods:10 locked -1"},
	}}
}

// downToMinusOne decrements while the string is 0 or more: a loser leaves -1 behind, and no other one anything.
const downToMinusOne = `
if tonumber(redis.call('GET', KEYS[1])) < 0 then return 0 end
if redis.call('DECR', KEYS[1]) < 0 then return 0 end
redis.call('SADD', KEYS[2], ARGV[1])
return 1`

// sellsTo lets the shop's own script decide for one user.
func (k *knownShop) sellsTo(t testing.TB, stock *redis.Client, user string) bool {
	t.Helper()
	sold, err := stock.Eval(context.Background(), k.decide, k.keys, user).Int()
	if err != nil {
		t.Error(err)
	}
	return sold == 1
}

// open starts the shop, which knows its user by a header of the test's.
func (k *knownShop) open(t *testing.T, stock *redis.Client) *shop {
	return open(t, func(w http.ResponseWriter, r *http.Request) {
		if !k.sellsTo(t, stock, r.Header.Get("Shopper")) {
			w.WriteHeader(http.StatusConflict)
		}
	})
}

// guard runs a gate by the shop's configuration in examples/layouts.
func (k *knownShop) guard(t *testing.T, s *shop, stock *redistest.Server) *running {
	t.Helper()
	folder := t.TempDir()
	copied := func(name, before, after string) string {
		text, err := os.ReadFile(filepath.Join(layoutsFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(before+string(text)+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	copied("available.lua", "", "")
	path := copied(k.example+".toml", "server.shutdown_delay = \"0s\"\n"+listeners, patientTable)
	command := exec.Command(binary, "run", "--config", path)
	command.Env = []string{"SHOP_URL=" + s.url, "REDIS_ADDR=" + stock.Addr}
	return start(t, path, command)
}

// buy orders one unit for a user.
func (k *knownShop) buy(g *running, user string) answer {
	g.t.Helper()
	method, target, head := k.order(user)
	r, err := http.NewRequest(method, "http://"+g.front+target, strings.NewReader(k.form))
	if err != nil {
		g.t.Fatal(err)
	}
	name, value, _ := strings.Cut(head, ": ")
	r.Header.Set(name, value)
	r.Header.Set("Shopper", user)
	a, err := send(g.client, r)
	if err != nil {
		g.t.Errorf("order of %s: %v", user, err)
	}
	return a
}

// does runs commands of Redis' own, as the shop would.
func does(t *testing.T, stock *redis.Client, commands ...string) {
	t.Helper()
	for _, c := range commands {
		var args []any
		for _, word := range strings.Fields(c) {
			args = append(args, word)
		}
		if err := stock.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLayouts_ShopsSellWhatTheyHaveAndTheRestIsRejected(t *testing.T) {
	t.Parallel()
	for _, k := range knownShops() {
		t.Run(k.example, func(t *testing.T) {
			t.Parallel()
			stock := redistest.Start(t)
			shop := k.open(t, stock.Client)
			g := k.guard(t, shop, stock)
			k.buy(g, "0").must(t, 404, "unknown_sku")
			does(t, stock.Client, k.fill)
			soon(t, "the first unit is sold", func() bool { return k.buy(g, "1").is(200, "") })
			if k.users {
				before := shop.arrivals.Load()
				k.buy(g, "1").must(t, 409, "duplicate")
				if n := shop.arrivals.Load() - before; n != 0 {
					t.Errorf("a second order of the same user reached the shop")
				}
			}
			k.buy(g, "2").must(t, 200, "")
			k.buy(g, "3").must(t, 200, "")
			soon(t, "it is sold out", func() bool { return k.buy(g, "4").is(409, "sold_out") })
			before := shop.arrivals.Load()
			for range 20 {
				k.buy(g, "5").must(t, 409, "sold_out")
			}
			if n := shop.arrivals.Load() - before; n != 0 {
				t.Errorf("%d orders of what is sold out reached the shop", n)
			}
			does(t, stock.Client, k.back...)
			soon(t, "a unit that was given back is sold", func() bool { return k.buy(g, "6").is(200, "") })
			soon(t, "it is sold out again", func() bool { return k.buy(g, "7").is(409, "sold_out") })
		})
	}
}
