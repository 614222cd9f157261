package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Each limit by itself is only observed; those beside it still reject.
func TestObserve_OneLimitIsObservedAndTheOthersEnforced(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup // in the shop at the same time
	both.Add(2)
	shop := open(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/together" {
			both.Done()
			both.Wait()
		}
	})
	g := gate(t, shop.setting(), `stock.source = "off"
limits.connection.request_rate = "1/h"
limits.connection.request_burst = 1
limits.connection.max_connections_per_ip = 1
limits.window.size = "1s"
limits.window.max = 1
limits.window.max_per_sku = 0
limits.window.max_delay = "0s"
limits.concurrency.max_in_flight = 1
limits.concurrency.max_queue = 0
limits.observe_only = ["connection", "window", "concurrency"]
responses.ratelimit_headers = true
[[limits.rate]]
name = "user"
key = "$cookie_uid"
rate = "1/h"
burst = 1
[[route]]
name = "all"
match = "/"
gate = "limit"
`)
	var pair sync.WaitGroup
	for range 2 {
		pair.Go(func() { g.ask("GET", "/together").must(t, 200, "") })
	}
	pair.Wait()
	for range 20 {
		g.ask("GET", "/").must(t, 200, "")
	}
	soon(t, "ip_conns is observed",
		func() bool { return g.metric("sluice_observed_connection_rejections_total", `reason="ip_conns"`) > 0 })
	for _, reason := range []string{"conn_rate", "window", "concurrency"} {
		soon(t, reason+" is observed",
			func() bool { return g.metric("sluice_observed_rejections_total", `reason="`+reason+`"`) > 0 })
	}
	g.wantMetric(0, "sluice_rejected_requests_total")
	begin := time.Now()
	first, second := g.ask("GET", "/", "Cookie: uid=7"), g.ask("GET", "/", "Cookie: uid=7")
	passed := int(time.Since(begin)/time.Second) + 1 // at most, in seconds: a busy machine may take some
	first.must(t, 200, "")
	second.must(t, 429, "rate")
	for _, a := range []answer{first, second} {
		policy, left, wait := a.header.Get("RateLimit-Policy"), a.header.Get("RateLimit"), 0
		_, err := fmt.Sscanf(left, `"user";r=0;t=%d`, &wait)
		if policy != `"user";q=1;w=3600` || err != nil || wait > 3600 || wait < 3600-passed {
			t.Errorf("RateLimit-Policy %q, RateLimit %q", policy, left)
		}
	}
}

func TestConnectionLimit_LastRequestClosesTheConnection(t *testing.T) {
	t.Parallel()
	g := gate(t, open(t, nil).setting(), "limits.connection.max_requests = 2")
	const page = "GET /page HTTP/1.1\r\nHost: shop\r\n\r\n"
	if a := g.raw(t, page); a.closes {
		t.Error("the first of two requests ended its connection")
	}
	c := dial(t, g.front)
	for i, last := range []bool{false, true} {
		if closes := asked(t, c, page); closes != last {
			t.Errorf("request %d of 2 ends its connection: %v", i+1, closes)
		}
	}
}

// asked sends a request on a connection and reads its answer, and tells whether that is the last.
func asked(t *testing.T, c net.Conn, text string) (closes bool) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.Close
}
