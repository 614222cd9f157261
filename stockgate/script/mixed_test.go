package script

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/redisconn"
)

// mixed has orders of some users come at once: a half to the instances, the other half to the shop's own backend, which
// runs its script on the same keys. It returns how many units both have sold.
func (s shop) mixed(t *testing.T, c *redis.Client, instances []*Reserver, from, to int) int64 {
	t.Helper()
	var sold atomic.Int64
	buy := func(i int) {
		user := fmt.Sprint(i)
		if i%2 == 0 {
			if s.buy(t, c, user) {
				sold.Add(1)
			}
			return
		}
		switch reason, _ := take(instances[i/2%len(instances)], s.sku, user, "", 1); reason {
		case reject.Admitted:
			sold.Add(1)
		case reject.SoldOut, reject.Concurrency: // the latter while the shop holds its lock
		default:
			t.Errorf("order %d: %s", i, reason)
		}
	}
	var all sync.WaitGroup
	for i := from; i < to; i++ {
		all.Go(func() { buy(i) })
	}
	all.Wait()
	return sold.Load()
}

// 500 orders at once for 10 units: exactly 10 are sold, and then it is sold out.
func TestPresets_ShopAndSluiceSellOneStock(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			r := redistest.Start(t)
			s.stock(t, r.Client, 10)
			instances := []*Reserver{reserver(t, r.Addr, s.def), reserver(t, r.Addr, s.def)}
			s.sellsTen(t, r.Client, instances, 0)
		})
	}
}

// sellsTen wants the rest of 10 units sold to 500 orders, of which so many were sold before.
func (s shop) sellsTen(t *testing.T, c *redis.Client, instances []*Reserver, before int64) {
	t.Helper()
	if n := before + s.mixed(t, c, instances, 1000, 1500); n != 10 || s.left(t, c) != 0 {
		t.Errorf("%d of 10 sold, %d left", n, s.left(t, c))
	}
	for i, instance := range instances {
		if reason, _ := take(instance, s.sku, fmt.Sprint("late-", i), "", 1); reason != reject.SoldOut {
			t.Errorf("afterwards: %s", reason)
		}
	}
}

// The same on a cluster, and after a fail-over: a part is sold, the master of all these SKUs is killed, and its
// replica, which has every write, takes its place. Exactly 10 are sold, before and after together.
func TestPresets_ShopAndSluiceSellOneStockOnAClusterAndAfterAFailOver(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	t.Parallel()
	nodes := redistest.Cluster(t, 3, 0)
	nodes.SetTimeout(time.Minute) // no election but the one below
	master := nodes.Masters[0]
	var partly, after []shop
	var instances [][]*Reserver
	var sold []int64
	skus := skusOn(nodes, master, 3*len(shops()))
	for i, s := range shops() {
		whole, part, probe := skus[3*i], skus[3*i+1], skus[3*i+2]
		two := []*Reserver{reserver(t, "", s.def, onMasters(nodes)), reserver(t, "", s.def, onMasters(nodes))}
		c := clientAbout(t, master.Addr, whole)
		s.stock(t, c, 10)
		s.about(whole).sellsTen(t, c, two, 0)

		c = clientAbout(t, master.Addr, part)
		s.stock(t, c, 10)
		sold, instances = append(sold, s.about(part).mixed(t, c, two, 0, 6)), append(instances, two)
		fillOf(t, nodes.Client(), s.def, s.about(probe).sku, 1000)
		partly, after = append(partly, s.about(part)), append(after, s.about(probe))
	}
	conn := master.Client.Conn() // WAIT is about the writes of one connection, and all that came before them
	defer conn.Close()
	check(t, conn.Set(background, "{"+skus[0]+"}", 1, 0).Err())
	testkit.Eventually(t, "the replica has every write", func() bool {
		n, err := conn.Wait(t.Context(), 1, time.Second).Result()
		return err == nil && n == 1
	})
	master.Kill()
	nodes.SetTimeout(time.Second)
	next := nodes.Successor(0)
	for i, s := range partly {
		t.Run(s.def.Preset, func(t *testing.T) {
			for _, instance := range instances[i] {
				testkit.Eventually(t, "the instance has found the new master", func() bool {
					reason, _ := take(instance, after[i].sku, fmt.Sprint(time.Now()), "", 1)
					return reason == reject.Admitted
				})
			}
			if sold[i] == 0 || sold[i] > 6 {
				t.Errorf("%d sold to 6 orders before the fail-over", sold[i])
			}
			s.sellsTen(t, clientAbout(t, next.Addr, skus[3*i+1]), instances[i], sold[i])
		})
	}
}

// about is the shop with another SKU than 1001. Its own backend needs a client of clientAbout then.
func (s shop) about(number string) shop {
	s.sku = strings.Replace(s.sku, "1001", number, 1)
	return s
}

// skusOn are n numbers of SKUs whose keys a master has.
func skusOn(nodes *redistest.Nodes, master *redistest.Server, n int) (skus []string) {
	for number := 2000; len(skus) < n; number++ {
		if sku := fmt.Sprint(number); nodes.Owner(redistest.Slot(redisconn.Tag("{"+sku+"}"))) == master {
			skus = append(skus, sku)
		}
	}
	return skus
}

// clientAbout is a client of one server for a shop's own backend. What its commands say of SKU 1001 is about another.
func clientAbout(t *testing.T, addr, sku string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 10 * time.Second, PoolTimeout: time.Minute})
	c.AddHook(another{"{" + sku + "}"})
	t.Cleanup(func() { c.Close() })
	return c
}

// another has commands name another SKU.
type another struct{ sku string }

func (a another) rename(all ...redis.Cmder) {
	for _, cmd := range all {
		for i, arg := range cmd.Args() {
			if text, ok := arg.(string); ok {
				cmd.Args()[i] = strings.ReplaceAll(text, "{1001}", a.sku)
			}
		}
	}
}

// DialHook implements redis.Hook.
func (a another) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (a another) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		a.rename(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (a another) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		a.rename(all...)
		return next(ctx, all)
	}
}
