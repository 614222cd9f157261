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
)

// hashDriver is a shop with a hash of what there is and what is bought.
const hashDriver = `
stock.layout.type = "hash_sold"
stock.layout.driver = "hash_ordered"
stock.layout.key = "goods:$sku"
`

// driven runs a gate that reserves by a driver in front of a shop.
func driven(t *testing.T, r *redistest.Server, s *shop, settings ...string) *running {
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

func TestDriver_GatesAndTheShopsOwnScriptSellOneStock(t *testing.T) {
	r, behind := redistest.Start(t), open(t, nil)
	r.Client.HSet(context.Background(), "goods:1001", "total", 50, "ordered", 0)
	fronts := []string{driven(t, r, behind, hashDriver).front, driven(t, r, behind, hashDriver).front}
	const own = `
		local has = redis.call('hmget', KEYS[1], 'total', 'ordered')
		if has[1] - has[2] < 1 then return 0 end
		return redis.call('hincrby', KEYS[1], 'ordered', 1) and 1`
	var bought, beside atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if i%4 == 0 {
				n, err := r.Client.Eval(context.Background(), own, []string{"goods:1001"}).Int64()
				if err != nil {
					t.Error(err)
				}
				beside.Add(n)
				return
			}
			b := &buyer{user: strconv.Itoa(i)}
			defer b.leave()
			switch status, reason := b.buy(fronts[i%2]); {
			case status == 200:
				bought.Add(1)
			case reason != "sold_out":
				t.Errorf("shopper %d heard %d %s", i, status, reason)
			}
		})
	}
	all.Wait()
	if n := ordered(t, r); n != 50 || bought.Load()+beside.Load() != 50 || behind.arrivals.Load() != bought.Load() {
		t.Errorf("%d bought: %d by the gates, %d by the shop itself; %d orders came", n, bought.Load(), beside.Load(), behind.arrivals.Load())
	}
}

func TestDriver_ResponseOfTheShopSettlesTheUnits(t *testing.T) {
	for _, c := range []struct{ status, bought int }{{200, 1}, {409, 0}, {500, 1}} {
		t.Run(strconv.Itoa(c.status), func(t *testing.T) {
			r := redistest.Start(t)
			behind := open(t, func(w http.ResponseWriter, q *http.Request) {
				if q.Header.Get("Idempotency-Key") != "mine" || q.Header.Get("Sluice-Sku") != "1001" || q.Header.Get("Sluice-Quantity") != "1" {
					t.Errorf("the shop is told %v", q.Header)
				}
				w.WriteHeader(c.status)
			})
			g := driven(t, r, behind, hashDriver)
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

func TestDriver_LimitationsAreLoggedOnce(t *testing.T) {
	g := driven(t, redistest.Start(t), open(t, nil), hashDriver)
	n := 0
	for _, line := range g.log.lines() {
		if strings.Contains(line.Msg, "docs/drivers.md") && strings.Contains(line.Msg, "hash_ordered") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("said %d times", n)
	}
}
