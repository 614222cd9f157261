package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// hashScript is a shop with a hash of what there is and what is bought.
const hashScript = `
stock.layout.type = "hash_sold"
stock.layout.key = "goods:$sku"
stock.script.preset = "hash_ordered"
stock.script.keys = ["goods:$sku"]
`

// scripted runs Sluice with a script that reserves, in front of a shop.
func scripted(t *testing.T, r *redistest.Server, s *shop, settings ...string) *running {
	t.Helper()
	return gate(t, append(append([]string{redisAt(r), boundless, s.setting()}, settings...), reserveRoutes)...)
}

// ordered is how many units of 1001 are bought.
func ordered(t *testing.T, r *redistest.Server) int {
	t.Helper()
	n, err := r.Client.HGet(context.Background(), "goods:1001", "ordered").Int()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestScript_InstancesAndTheShopsOwnScriptSellOneStock(t *testing.T) {
	t.Parallel()
	r, behind := redistest.Start(t), open(t, nil)
	r.Client.HSet(context.Background(), "goods:1001", "total", 10, "ordered", 0)
	fronts := []string{scripted(t, r, behind, hashScript).front, scripted(t, r, behind, hashScript).front}
	const own = `
		local has = redis.call('hmget', KEYS[1], 'total', 'ordered')
		if has[1] - has[2] < 1 then return 0 end
		return redis.call('hincrby', KEYS[1], 'ordered', 1) and 1`
	var bought, beside atomic.Int64
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() {
			if i%2 == 0 {
				n, err := r.Client.Eval(context.Background(), own, []string{"goods:1001"}).Int64()
				if err != nil {
					t.Error(err)
				}
				beside.Add(n)
				return
			}
			b := &buyer{user: strconv.Itoa(i)}
			defer b.leave()
			switch status, reason := b.buy(fronts[i/2%2]); {
			case status == 200:
				bought.Add(1)
			case reason != "sold_out" && reason != "concurrency": // the latter after half a second, on a busy machine
				t.Errorf("shopper %d heard %d %s", i, status, reason)
			}
		})
	}
	all.Wait()
	if n := ordered(t, r); n != 10 || bought.Load()+beside.Load() != 10 || behind.arrivals.Load() != bought.Load() {
		t.Errorf("%d bought: %d by the gates, %d by the shop itself; %d orders came", n, bought.Load(), beside.Load(),
			behind.arrivals.Load())
	}
}

func TestScript_ResponseOfTheShopSettlesTheUnits(t *testing.T) {
	testkit.Nightly(t, "the tests of the ledger run always")
	for _, c := range []struct{ status, bought int }{{200, 1}, {409, 0}, {500, 1}} {
		t.Run(strconv.Itoa(c.status), func(t *testing.T) {
			r := redistest.Start(t)
			behind := open(t, func(w http.ResponseWriter, q *http.Request) {
				if q.Header.Get("Idempotency-Key") != "mine" || q.Header.Get("Sluice-Sku") != "1001" ||
					q.Header.Get("Sluice-Quantity") != "1" {
					t.Errorf("the shop is told %v", q.Header)
				}
				w.WriteHeader(c.status)
			})
			g := scripted(t, r, behind, hashScript)
			ok(t, "stock", "set", "--config", g.file, "1001", "5")
			b := &buyer{user: "7", key: "mine"}
			defer b.leave()
			b.buy(g.front)
			soon(t, "the units are what the shop's answer says", func() bool { return ordered(t, r) == c.bought })
			if text := state(t, g, "mine"); !strings.Contains(text, `"none"`) {
				t.Errorf("the state of the order is %s", text)
			}
		})
	}
}

// state is what the gate tells of a serial.
func state(t *testing.T, g *running, serial string) string {
	t.Helper()
	resp, err := g.client.Get(fmt.Sprintf("http://%s/.sluice/orders/%s?sku=1001", g.front, serial))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The built program, two instances: a unit that one gives back is sold by the other one, and 200 orders that come once
// a restock is seen are all forwarded.
func TestScript_RestockAndGiveBackAreSeenByAllInstances(t *testing.T) {
	testkit.Nightly(t, "the tests of the ledger run always")
	r := redistest.Start(t)
	r.Client.HSet(context.Background(), "goods:1001", "total", 1, "ordered", 0)
	var rejects atomic.Bool
	rejects.Store(true)
	decide := make(chan struct{})
	behind := open(t, func(w http.ResponseWriter, _ *http.Request) {
		if rejects.Load() {
			<-decide
			w.WriteHeader(http.StatusConflict)
		}
	})
	begin := func() string { return scripted(t, r, behind, hashScript, unhurried).front }
	one, two := begin(), begin()
	buys := func(front, user string) (int, string) {
		b := &buyer{user: user}
		defer b.leave()
		return b.buy(front)
	}
	var held sync.WaitGroup
	held.Go(func() { buys(one, "first") })
	soon(t, "the unit is taken", func() bool { return ordered(t, r) == 1 })
	for i, front := range []string{one, two} {
		if status, reason := buys(front, fmt.Sprint("early-", i)); reason != "sold_out" {
			t.Errorf("before: %d %s", status, reason)
		}
	}
	rejects.Store(false)
	close(decide)
	held.Wait()
	soon(t, "the other instance sells the unit", func() bool { status, _ := buys(two, "second"); return status == 200 })

	r.Client.HSet(context.Background(), "goods:1001", "total", 1000)
	for _, front := range []string{one, two} {
		soon(t, "the restock is seen", func() bool { status, _ := buys(front, "third"); return status == 200 })
	}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if status, reason := buys([]string{one, two}[i%2], fmt.Sprint("late-", i)); status != 200 {
				t.Errorf("order %d: %d %s", i, status, reason)
			}
		})
	}
	all.Wait()
}

func TestScript_LimitationsAreLoggedOnce(t *testing.T) {
	testkit.Nightly(t, "the tests of the ledger run always")
	g := scripted(t, redistest.Start(t), open(t, nil), hashScript)
	g.logs(t, "docs/scripts.md")
	n := 0
	for _, line := range g.log.lines() {
		if strings.Contains(line.Msg, "docs/scripts.md") && strings.Contains(line.Msg, "hash_ordered") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("said %d times", n)
	}
}
