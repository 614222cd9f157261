package e2e

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// threeRoutes are one without limits, one with places of its own, and one for the rest.
const threeRoutes = `stock.source = "off"
[[route]]
name = "page"
match = "/page"
gate = "pass"
[[route]]
name = "search"
match = "/search"
gate = "limit"
max_in_flight = 8
[[route]]
name = "order"
match = "/"
gate = "limit"
`

func TestConcurrency_SlowOrdersStarveNoPage(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	shop := open(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/order" {
			<-release
		}
	})
	g := gate(t, shop.setting(), unhurried, "upstream.max_conns = 16", "limits.concurrency.max_in_flight = 64",
		threeRoutes)
	var orders sync.WaitGroup
	defer orders.Wait()
	defer close(release)
	for range 32 {
		orders.Go(func() { g.ask("POST", "/order") })
	}
	soon(t, "the orders have all connections that they may have", func() bool { return shop.arrivals.Load() == 14 })
	for range 20 {
		g.ask("GET", "/page").must(t, 200, "")
	}
}

func TestConcurrency_HangingSearchLeavesSlotsForOrders(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	shop := open(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/search" {
			<-release
		}
	})
	g := gate(t, shop.setting(), unhurried,
		"limits.concurrency.max_in_flight = 10\nlimits.concurrency.queue_timeout = \"50ms\"", threeRoutes)
	var searches sync.WaitGroup
	defer searches.Wait()
	defer close(release)
	for range 8 {
		searches.Go(func() { g.ask("GET", "/search") })
	}
	soon(t, "the searches have all their places",
		func() bool { return g.metric("sluice_route_in_flight", `route="search"`) == 8 })
	g.ask("GET", "/search").must(t, 429, "queue_timeout")
	for range 20 {
		g.ask("POST", "/order").must(t, 200, "")
	}
	g.wantMetric(8, "sluice_gated_in_flight")
}

func TestConcurrency_SlowReaderHoldsNoSlot(t *testing.T) {
	t.Parallel()
	shop := open(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 128 { // in chunks, and more than any socket takes
			_, _ = io.WriteString(w, strings.Repeat("x", 7<<10))
			w.(http.Flusher).Flush()
		}
	})
	g := gate(t, shop.setting(), unhurried,
		"limits.concurrency.max_in_flight = 1\nlimits.concurrency.max_queue = 0", threeRoutes)
	for i := range int64(4) {
		c := dial(t, g.front) // reads nothing
		if _, err := io.WriteString(c, "GET /search HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		soon(t, "the shop has finished", func() bool {
			return shop.arrivals.Load() == i+1 && g.metric("sluice_gated_in_flight") == 0
		})
	}
	if a := g.ask("GET", "/search"); a.status != 200 || len(a.body) != 128*7<<10 {
		t.Errorf("%d, %d bytes", a.status, len(a.body))
	}
}

func TestConcurrency_ClientThatLeavesTheQueueNeverReachesTheShop(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	shop := open(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			<-release
		}
	})
	g := gate(t, shop.setting(), unhurried,
		"limits.concurrency.max_in_flight = 1\nlimits.concurrency.queue_timeout = \"60s\"", threeRoutes)
	say := func(path string) (l listener, hangUp func() error) {
		c := dial(t, g.front)
		if _, err := io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return listener{bufio.NewReader(c)}, c.Close
	}
	say("/first")
	soon(t, "the first is in the shop", func() bool { return shop.arrivals.Load() == 1 })
	_, hangUp := say("/left")
	soon(t, "one waits", func() bool { return g.metric("sluice_queue_length") == 1 })
	last, _ := say("/last")
	soon(t, "two wait", func() bool { return g.metric("sluice_queue_length") == 2 })
	if err := hangUp(); err != nil {
		t.Fatal(err)
	}
	close(release)
	if kind, _, err := last.hear(); kind != "200 " || err != nil {
		t.Errorf("the last hears %q, %v", kind, err)
	}
	if n := shop.arrivals.Load(); n != 2 {
		t.Errorf("the shop saw %d requests, want the first and the last", n)
	}
	g.wantMetric(1, "sluice_queue_waits_total", `end="gone"`)
	g.wantMetric(1, "sluice_rejected_requests_total", `reason="client_gone"`, `route="order"`)
}
