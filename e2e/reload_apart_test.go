package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// heap is what the gate keeps after two garbage collections, in bytes: a sync.Pool outlives one.
func (g *running) heap(t *testing.T) int {
	t.Helper()
	g.control("GET", "/debug/pprof/heap?gc=1", "")
	text := g.control("GET", "/debug/pprof/heap?gc=1&debug=1", "").body
	found := regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no heap in %.200q", text)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Forty reloads a second apart under load, each of which changes limits, routes, the stock's layout and the targets: no
// request fails, nothing is sold that is sold out, the counters count each request, and a buyer keeps what he has used.
// After 100 more reloads the heap is as before.
func TestReload_SecondApartChangesEverything(t *testing.T) {
	testkit.Nightly(t, "it takes 40 seconds, and measures memory")
	r, one, two := redistest.Start(t), open(t, nil), open(t, nil)
	for sku, left := range map[string]int{"1001": 1 << 30, "1002": 0} {
		r.Client.Set(t.Context(), "left:"+sku, left, 0)
		r.Client.HSet(t.Context(), "item:"+sku, "inStock", left)
	}
	layouts := []string{`stock.layout = { key = "left:$sku" }`,
		`stock.layout = { type = "hash_left", key = "item:$sku" }`}
	targets := []string{one.setting(), two.setting(), "upstream.targets = " + quoted(one.url, two.url)}
	const limit, spare, apart = "max_in_flight = 1000", "/spare/0", 40
	g := gate(t, targets[0], layouts[0], redisAt(r), strings.Replace(boundless, "max_in_flight = 2000", limit, 1), `
[[limits.rate]]
name = "buyer"
key = "$cookie_uid"
rate = "5/h"
burst = 5

[[route]]
name = "spare"
match = "GET `+spare+`"
gate = "limit"
`+strings.Replace(routes, "user = \"$cookie_uid\"\n", "", 1))
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	reload := func(i int) {
		g.rewrite(strings.NewReplacer(limit, fmt.Sprint("max_in_flight = ", 1000+i), spare, fmt.Sprint("/spare/", i),
			layouts[0], layouts[i%2], targets[0], targets[i%3]).Replace(string(text)), true)
	}
	for range 3 {
		g.order("1001").must(t, 200, "")
	}
	end := g.steady(rateOf(t), call{"GET", "/", 200}, call{"POST", "/api/seckill/1001/order", 200},
		call{"POST", "/api/seckill/1002/order", 409}, call{"GET", "/spare/1/page", 200})
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := 1; i <= apart; i++ {
		<-tick.C
		reload(i)
		g.ask("GET", fmt.Sprint("/spare/", i)).must(t, 200, "")
	}
	sent := end()
	for range 2 {
		g.order("1001").must(t, 200, "")
	}
	g.order("1001").must(t, 429, "rate")
	sent += apart + 3 + 3
	g.wantMetric(float64(sent), "sluice_http_requests_total")
	g.wantMetric(apart, "sluice_http_requests_total", `route="spare"`)
	forwarded := float64(one.arrivals.Load() + two.arrivals.Load())
	g.wantMetric(float64(sent)-1-forwarded, "sluice_rejected_requests_total", `reason="sold_out"`)
	for i := range 10 {
		reload(apart + 1 + i)
	}
	before := g.heap(t)
	for i := range 100 {
		reload(apart + 11 + i)
	}
	after := g.heap(t)
	if after > before+5<<20 {
		t.Errorf("the heap has grown from %d KiB to %d KiB", before>>10, after>>10)
	}
	t.Logf("%d KiB, and %d KiB after 100 reloads", before>>10, after>>10)
	t.Logf("%d requests, %v forwarded to the one shop, %v to the other", sent, one.arrivals.Load(), two.arrivals.Load())
}
