package e2e

import (
	"fmt"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

func TestRedisOutage_OrdersAreRejectedUntilRedisIsBack(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	g := gate(t, shop.setting(), redisAt(redis), `stock.on_error = "reject"`)
	redis.Client.Set(t.Context(), key, 100, 0)
	g.order("1001").must(t, 200, "")
	g.wantMetric(1, "sluice_redis_up")
	if text := g.readiness(); !strings.Contains(text, "redis: reached") {
		t.Errorf("with Redis there, readiness says: %s", text)
	}

	redis.Kill()
	soon(t, "orders are rejected", func() bool { return g.order("1001").is(503, "stock_error") })
	arrived := shop.arrivals.Load()
	for range 20 {
		g.order("1001").must(t, 503, "stock_error")
	}
	if n := shop.arrivals.Load() - arrived; n != 0 {
		t.Errorf("%d orders reached the shop while the stock could not be known", n)
	}
	g.wantMetric(0, "sluice_redis_up")
	if n := g.metric("sluice_stock_fallback_total", `decision="reject"`); n < 21 {
		t.Errorf("on_error decided %v orders, want 21 at least", n)
	}
	soon(t, "readiness says that Redis is away",
		func() bool { return strings.Contains(g.readiness(), "redis: cannot reach Redis for") })
	wants(t, g.readiness(), "stock.redis.addresses", "sluice check --online says what is wrong")
	if a := g.ask("GET", "/page"); a.status != 200 {
		t.Errorf("a page of the shop needs no stock, but was answered %d %q", a.status, a.reason)
	}
	soon(t, "an instance that can only reject is not ready", func() bool { return !g.ready() })

	redis.Restart()
	redis.Client.Set(t.Context(), key, 100, 0)
	took := soon(t, "orders pass again", func() bool { return g.order("1001").is(200, "") })
	t.Logf("orders pass %v after Redis is back", took)
	soon(t, "the gate is ready again", g.ready)
	g.wantMetric(1, "sluice_redis_up")
}

func TestRedisOutage_OrdersPassWhereAllowedAndAreCounted(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	g := gate(t, shop.setting(), redisAt(redis), `stock.on_error = "allow"`)
	redis.Client.Set(t.Context(), key, 0, 0)
	soon(t, "the gate knows that it is sold out", func() bool { return g.order("1001").is(409, "sold_out") })

	redis.Kill()
	soon(t, "orders pass", func() bool { return g.order("1001").is(200, "") })
	arrived := shop.arrivals.Load()
	counted := g.metric("sluice_stock_fallback_total", `decision="allow"`)
	if counted != float64(arrived) {
		t.Errorf("%d orders reached the shop, %v of them counted as allowed without stock", arrived, counted)
	}
	for range 20 {
		g.order("1001").must(t, 200, "")
	}
	if n := shop.arrivals.Load() - arrived; n != 20 {
		t.Errorf("%d of 20 orders reached the shop", n)
	}
	g.wantMetric(counted+20, "sluice_stock_fallback_total", `decision="allow"`)
	g.wantMetric(0, "sluice_redis_up")
	soon(t, "readiness says that Redis is away",
		func() bool { return strings.Contains(g.readiness(), "redis: cannot reach Redis for") })
	if !g.ready() {
		t.Errorf("with Redis away and on_error = allow, readiness says: %s", g.readiness())
	}

	redis.Restart()
	redis.Client.Set(t.Context(), key, 0, 0)
	soon(t, "orders are rejected again", func() bool { return g.order("1001").is(409, "sold_out") })
}

// Orders hear why they are rejected.
func TestRedisOutage_HangingRedisIsAnOutageToo(t *testing.T) {
	t.Parallel()
	for gateName, start := range map[string]func(*testing.T, *redistest.Server, string) *running{
		"check": func(t *testing.T, redis *redistest.Server, shop string) *running {
			redis.Client.Set(t.Context(), key, 100, 0)
			return gate(t, shop, unlimited, redisAt(redis))
		},
		"reserve": func(t *testing.T, redis *redistest.Server, shop string) *running {
			return reserves(t, redis, 100, shop)
		},
	} {
		t.Run(gateName, func(t *testing.T) {
			t.Parallel()
			redis, shop := redistest.Start(t), open(t, nil)
			g, user := start(t, redis, shop.setting()), 0
			order := func() answer {
				user++
				return g.ask("POST", orderPath, fmt.Sprint("Cookie: uid=", user))
			}
			hears := func(status int, reason string) func() bool {
				return func() bool { return order().is(status, reason) }
			}
			soon(t, "orders pass", hears(200, ""))
			redis.Pause()
			soon(t, "orders are rejected", hears(503, "stock_error"))
			g.wantMetric(0, "sluice_redis_up")
			for range 50 {
				order().must(t, 503, "stock_error")
			}
			redis.Resume()
			soon(t, "orders pass again", hears(200, ""))
		})
	}
}

// While an order waits for its answer from Redis, a page is answered.
func TestRedisOutage_PagesDoNotWaitForRedis(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	g := reserves(t, redis, 100, shop.setting(), `stock.redis.timeout = "1m"`)
	g.ask("POST", orderPath, "Cookie: uid=1").must(t, 200, "")
	asked := func() float64 { return g.metric("sluice_ledger_call_orders_count", `operation="reserve"`) }
	ordered, before := make(chan answer, 1), asked()
	redis.Pause()
	go func() { ordered <- g.ask("POST", orderPath, "Cookie: uid=2") }()
	soon(t, "Redis is asked for a unit", func() bool { return asked() > before })
	g.ask("GET", "/page").must(t, 200, "")
	if len(ordered) > 0 {
		t.Fatalf("the order did not wait for Redis: %+v", <-ordered)
	}
	redis.Resume()
	(<-ordered).must(t, 200, "")
}

func (g *running) readiness() string {
	_, text := g.peek("/readyz?verbose")
	return text
}

// What is no stock is neither 0 nor without end: on_error decides, and an operator hears of it.
func TestStock_InvalidValueIsNamedAndOnErrorDecides(t *testing.T) {
	t.Parallel()
	for onError, want := range map[string]answer{
		"reject": {status: 503, reason: "stock_error"},
		"allow":  {status: 200},
	} {
		t.Run(onError, func(t *testing.T) {
			t.Parallel()
			redis, shop := redistest.Start(t), open(t, nil)
			ctx := t.Context()
			redis.Client.Set(ctx, "seckill:stock:words", "plenty", 0)
			redis.Client.Set(ctx, "seckill:stock:huge", "99999999999999999999", 0)
			redis.Client.RPush(ctx, "seckill:stock:list", "a", "b")
			redis.Client.Set(ctx, "seckill:stock:good", 5, 0)
			g := gate(t, shop.setting(), redisAt(redis), `stock.on_error = "`+onError+`"`)
			bad := []string{"words", "huge", "list"}
			for _, sku := range bad {
				for range 3 {
					g.order(sku).must(t, want.status, want.reason)
				}
				soon(t, sku+" is named in a warning", func() bool { return g.log.warnings(sku) > 0 })
				if n := g.log.warnings(sku); n != 1 {
					t.Errorf("%s is named in %d warnings, want 1", sku, n)
				}
			}
			g.order("good").must(t, 200, "")
			g.wantMetric(9, "sluice_stock_fallback_total", `decision="`+onError+`"`)
			g.wantMetric(1, "sluice_redis_up")

			redis.Client.Del(ctx, "seckill:stock:list")
			redis.Client.Set(ctx, "seckill:stock:list", 1, 0)
			before := g.metric("sluice_stock_fallback_total")
			soon(t, "a stock that was put right is believed", func() bool {
				a := g.order("list")
				now := g.metric("sluice_stock_fallback_total")
				known := now == before
				before = now
				return a.is(200, "") && known
			})
		})
	}
}

// warnings counts the log's warnings about a SKU.
func (j *journal) warnings(sku string) (n int) {
	for _, l := range j.lines() {
		if l.Level == "WARN" && l.SKU == sku {
			n++
		}
	}
	return n
}
