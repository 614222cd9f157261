package e2e

import (
	"bufio"
	"io"
	"net/http"
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
