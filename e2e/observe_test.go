package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
)

func TestObserve_RejectsNothingAndCountsEverything(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	redis.Client.Set(t.Context(), key, 0, 0)
	redis.Client.Set(t.Context(), "seckill:stock:plenty", 1_000_000, 0)
	redis.Client.Set(t.Context(), "seckill:stock:words", "none", 0)
	g := gate(t, shop.setting(), redisAt(redis), `mode = "observe"`, "limits.window.max_per_sku = 1",
		"limits.window.max_delay = \"0s\"",
		`limits.connection.request_rate = "1/s"`, "limits.connection.request_burst = 200",
		"limits.connection.max_connections_per_ip = 2")

	each := map[string]func() answer{
		"sold_out":     func() answer { return g.order("1001") },
		"unknown_sku":  func() answer { return g.order("sold-nowhere") },
		"stock_error":  func() answer { return g.order("words") },
		"unidentified": func() answer { return g.ask("POST", "/api/seckill/1001/order") },
	}
	for reason, send := range each {
		for range 10 {
			send().must(t, 200, "")
		}
		// Orders of one SKU that follow each other closely may be over its window instead, which is asked first.
		seen := g.metric("sluice_observed_rejections_total", `route="order"`, `reason="`+reason+`"`)
		if seen == 0 || reason == "unidentified" && seen != 10 {
			t.Errorf("%v of 10 were counted as %s", seen, reason)
		}
	}
	g.wantMetric(40, "sluice_observed_rejections_total")

	const total = 2000 // over the window of a SKU, the rate of a connection and the connections of an address
	crowd := rush(t, g.front, 8, total)
	if crowd["200 "] != total {
		t.Errorf("of %d orders were answered: %v", total, crowd)
	}
	if n := shop.arrivals.Load(); n != total+40 {
		t.Errorf("%d of %d orders reached the shop", n, total+40)
	}
	for _, reason := range []string{"sold_out", "conn_rate"} {
		soon(t, reason+" is observed",
			func() bool { return g.metric("sluice_observed_rejections_total", `reason="`+reason+`"`) > 0 })
	}
	soon(t, "ip_conns is observed",
		func() bool { return g.metric("sluice_observed_connection_rejections_total", `reason="ip_conns"`) > 0 })
	g.wantMetric(0, "sluice_rejected_connections_total")
	g.wantMetric(0, "sluice_rejected_requests_total")
}

// heardBy is a shop that writes down what reaches it: request lines, fields (without what a proxy adds) and bodies.
type heardBy struct {
	*shop
	mu  sync.Mutex
	all []string
}

func listens(t *testing.T) *heardBy {
	h := &heardBy{}
	h.shop = open(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, added := range []string{"Via", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Request-Id"} {
			r.Header.Del(added)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, fmt.Sprintf("%s %s of %s %v %q", r.Method, r.RequestURI, r.Host, r.Header, body))
	})
	return h
}

func (h *heardBy) heard() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}

// The gate would reject each of these requests but the first. In observe mode the shop hears all of them, as it would
// without the gate.
func TestObserve_ShopHearsWhatItWouldHearWithoutTheGate(t *testing.T) {
	t.Parallel()
	direct, behind := listens(t), listens(t)
	redis := redistest.Start(t)
	redis.Client.Set(t.Context(), key, 0, 0)
	g := gate(t, behind.setting(), redisAt(redis), `mode = "observe"`,
		"server.max_body_size = \"1KiB\"", "upstream.pass_host = true",
		strings.Replace(routes, "[[route]]", `[[route]]
name = "reserved"
match = "POST /reserved/{sku}"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"

[[route]]
name = "json"
match = "POST /json"
gate = "check"
sku = "$json_sku"
user = "$cookie_uid"

[[route]]`, 1))
	json := func(body string) string {
		return fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	for _, text := range []string{
		complete("GET", "/page?a=1&a=%32", "Accept: */*"),
		complete("POST", "/api/seckill/1001/order", "Cookie: uid=7"),               // sold out
		complete("POST", "/api/seckill/1001/order", "Accept: */*"),                 // without a user
		complete("POST", "/api/seckill/1001/order", "Cookie: uid=7; uid=8"),        // of two users
		complete("POST", "/api/seckill/nowhere/order", "Cookie: uid=7"),            // unknown SKU
		complete("POST", "/api//seckill/1001/order", "Cookie: uid=7"),              // ambiguous
		complete("POST", "/api/seckill/%31001/order;x=1", "Cookie: uid=7"),         // ambiguous
		complete("PUT", "/elsewhere/../x", "X-HTTP-Method-Override: POST"),         // ambiguous
		complete("POST", "/reserved/1001", "Cookie: uid=7\r\nIdempotency-Key: k"),  // no ledger
		complete("POST", "/json", json(`{"sku":"1001","sku":"1002"}`)),             // two SKUs
		complete("POST", "/json", json(`sku=1001`)),                                // no JSON
		complete("POST", "/json", json(`{"sku":"`+strings.Repeat("x", 2000)+`"}`)), // too large
	} {
		before := len(direct.heard())
		for _, front := range []string{strings.TrimPrefix(direct.url, "http://"), g.front} {
			c := dial(t, front)
			saying(t, c, text)
			if a := answered(t, bufio.NewReader(c)); a.status != 200 || a.reason != "" || a.body != "" {
				t.Errorf("%.60q: answered %d %q %q", text, a.status, a.reason, a.body)
			}
		}
		if a, b := direct.heard(), behind.heard(); len(a) != before+1 || len(b) != before+1 || a[before] != b[before] {
			t.Fatalf("without the gate the shop hears\n%q, with it\n%q", a[before:], b[before:])
		}
	}
	if n := g.metric("sluice_observed_rejections_total"); n != 11 {
		t.Errorf("%v rejections were observed, want 11", n)
	}
	g.wantMetric(0, "sluice_rejected_requests_total")
}
