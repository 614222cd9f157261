package e2e

import (
	"fmt"
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
