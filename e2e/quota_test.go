package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

const saleOfThree = `
[[sale]]
name = "three"
skus = ["a", "b", "c"]
starts = 2026-01-01T00:00:00Z
ends = 2199-01-01T00:00:00Z
max_per_user = 2
`

// unitsOf are the units of a user's orders.
func (s *cartShop) unitsOf(user string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.units[user]
}

// unitsOf are the units that ledgers count for each user.
func unitsOf(t *testing.T, client redis.UniversalClient, skus ...string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, sku := range skus {
		users, err := client.HGetAll(context.Background(), "sluice:shop:{"+sku+"}:u").Result()
		if err != nil {
			t.Fatal(err)
		}
		for user, text := range users {
			n, _ := strconv.Atoi(text)
			all[user] += n
		}
	}
	return all
}

func TestQuota_UserHasNoMoreOfAllSKUsTogether(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		r := redistest.Start(t)
		crowdOfQuota(t, redisAt(r), r.Client)
	})
	t.Run("sentinel", func(t *testing.T) {
		testkit.Nightly(t, "it starts sentinels")
		w := redistest.Sentinel(t)
		at := "stock.source = \"redis\"\nstock.redis.addresses = " + quoted(w.Addrs()...) +
			"\nstock.redis.master_name = " + strconv.Quote(w.Name)
		crowdOfQuota(t, at, w.Master().Client)
	})
	t.Run("cluster", func(t *testing.T) {
		nodes := redistest.Cluster(t, 3)
		crowdOfQuota(t, "stock.source = \"redis\"\nstock.redis.addresses = "+quoted(nodes.Addrs()...), nodes.Client())
	})
}

// crowdOfQuota has 50 users order 500 times at once, at two gates, some of them two SKUs in one order. Then each goes
// on until it has enough.
func crowdOfQuota(t *testing.T, at string, client redis.UniversalClient) {
	shop := openCartShop(t, nil)
	settings := []string{at, boundless, shop.settings(), saleOfThree, cartRoutes}
	one, two := gate(t, settings...), gate(t, settings...)
	setUnits(t, one.file, 200, "a", "b", "c")
	skus, fronts := []string{"a", "b", "c"}, []string{one.front, two.front}
	order := func(user, n int) (status int, reason string) {
		lines := []cartLine{{skus[n%3], 1}}
		if n%10 == 9 {
			lines = append(lines, cartLine{skus[(n+1)%3], 1})
		}
		key := fmt.Sprintf("k%d-%d", user, n)
		status, reason, _ = orderCart(one.client, fronts[n%2], fmt.Sprint("u", user), key, lines)
		return status, reason
	}
	var all sync.WaitGroup
	for user := range 50 {
		for n := range 10 {
			all.Go(func() { order(user, n) })
		}
	}
	all.Wait()
	for user := range 50 {
		all.Go(func() {
			// A unit counts while its order may yet come to nothing: who hears "duplicate" then has not enough for good.
			for n, begin := 100, time.Now(); time.Since(begin) < 2*long; n++ {
				if _, reason := order(user, n); reason != "duplicate" || n%10 == 9 {
					continue
				}
				if shop.unitsOf(fmt.Sprint("u", user)) == 2 {
					return
				}
				time.Sleep(pause) // between two tries
			}
			t.Errorf("u%d never hears that it has enough", user)
		})
	}
	all.Wait()
	shop.mu.Lock()
	booked := maps.Clone(shop.units)
	shop.mu.Unlock()
	for user := range 50 {
		if n := booked[fmt.Sprint("u", user)]; n != 2 {
			t.Errorf("u%d has %d units", user, n)
		}
	}
	soon(t, "the ledgers have what the shop has", func() bool { return maps.Equal(unitsOf(t, client, skus...), booked) })
}

func TestQuota_ReturnedUnitsCountNoMore(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openCartShop(t, nil)
	g := gate(t, redisAt(r), boundless, shop.settings(), saleOfThree, cartRoutes)
	setUnits(t, g.file, 9, "a", "b", "c", "free")
	other := gate(t, redisAt(r), boundless, shop.settings(), saleOfThree, cartRoutes)
	wants := func(at *running, user, key, sku string, units int, reason string) {
		t.Helper()
		_, got, _ := orderCart(at.client, at.front, user, key, []cartLine{{sku, units}})
		if got != reason {
			t.Errorf("%s of %s: %q, want %q", key, user, got, reason)
		}
	}
	shop.status = http.StatusConflict
	wants(g, "u", "rejected", "a", 2, "")
	shop.status = 200
	soon(t, "it is released", func() bool { return len(unitsOf(t, r.Client, "a")) == 0 })
	wants(g, "u", "one", "a", 1, "")
	wants(g, "u", "two", "b", 1, "")
	soon(t, "both are sold", func() bool { return ledgerOf(t, r, "a").sold+ledgerOf(t, r, "b").sold == 2 })
	wants(other, "u", "three", "c", 1, "duplicate")
	wants(other, "u", "two", "b", 1, "confirmed")
	wants(other, "u", "foreign", "free", 5, "")
	g.control("POST", "/api/v1/reservations/one/refund?sku=a", "")
	wants(other, "u", "three", "c", 1, "")
	wants(other, "u", "five", "a", 1, "duplicate")
	other.replace(t, "\nmax_per_user = 2", "\nmax_per_user = 3")
	wants(other, "u", "five", "a", 1, "")
	ok(t, "stock", "freeze", "--config", g.file, "b")
	wants(other, "v", "four", "c", 1, "stock_error")
}

// The gate dies when a unit is reserved and not counted yet.
func TestQuota_NothingIsLeftOfAnOrderThatWasNotCounted(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openCartShop(t, nil)
	text := strings.Join([]string{redisAt(r), boundless, shop.settings(), saleOfThree, cartRoutes}, "\n")
	path := file(t, listeners+"server.shutdown_delay = \"0s\"\n"+text)
	setUnits(t, path, 9, "a", "b", "c")
	command := exec.Command(breakable(t), "run", "--config", path)
	command.Env = []string{"SLUICE_FAILPOINT=after-reserve:2"}
	first := start(t, path, command)
	first.mortal = true
	orderCart(first.client, first.front, "u", "one", []cartLine{{"a", 1}})
	orderCart(first.client, first.front, "u", "two", []cartLine{{"b", 1}})
	soon(t, "the gate dies", first.gone)
	if b := ledgerOf(t, r, "b"); b.held != 1 {
		t.Fatalf("the unit is not reserved: %+v", b)
	}
	g := first.again(t)
	if _, reason, _ := orderCart(g.client, g.front, "u", "three", []cartLine{{"c", 1}}); reason != "duplicate" {
		t.Errorf("while it may yet be an order: %q", reason)
	}
	soon(t, "what was not counted is released", func() bool { return unitsOf(t, r.Client, "a", "b", "c")["u"] == 1 })
	status, reason, _ := orderCart(g.client, g.front, "u", "four", []cartLine{{"c", 1}})
	if status != 200 || reason != "" {
		t.Errorf("the unit counts for ever: %d %q", status, reason)
	}
	if n := shop.unitsOf("u"); n != 2 {
		t.Errorf("the shop has %d units of the user", n)
	}
}
