package e2e

import (
	"bufio"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/redistest"
)

// obeyed are keys whose part no other test of the built binary asks. What a part does with its key, the tests of its
// package say.
const obeyed = `stock.source = "off"
stock.sold_out_ttl = "5m"
stock.sold_out_on = { json = "code", values = [500500] }
server.shutdown_timeout = "300ms"
limits.connection.max_requests = 2
limits.concurrency.max_in_flight = 2
limits.concurrency.queue_timeout = "10m"
limits.concurrency.priority = "$jwt_level=vip"
upstream.health.path = "/healthz"
upstream.tls.server_name = "example.com"

[[limits.rate]]
name = "user"
key = "$cookie_uid"
rate = "1/h"
burst = 1
overrides = { "vip-*" = "3/h", "tester" = "off" }
routes = ["rest"]

[[limits.rate]]
name = "paced"
key = "$host"
rate = "2/s"
burst = 1
max_delay = "10s"
routes = ["paced"]

[[route]]
name = "digits"
match = "POST /digits/{sku}"
gate = "limit"
sku = "$path_sku"
sku_form = "digits"

[[route]]
name = "search"
match = "/search"
gate = "limit"
max_in_flight = 1

[[route]]
name = "paced"
match = "/paced"
gate = "limit"

[[route]]
name = "rest"
match = "/"
gate = "limit"
`

// Each key of the file reaches the part that obeys it. The rows share one gateway; the last one ends it.
func TestKeys_EachReachesItsPart(t *testing.T) {
	t.Parallel()
	arrived, serve := make(chan string, 8), make(chan struct{})
	var sick atomic.Bool
	shop := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch who := r.Header.Get("X-Who"); {
		case who != "":
			arrived <- who
			<-serve
		case r.URL.Path == "/digits/7":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"code":500500}`)
		case r.URL.Path == "/healthz" && sick.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(shop.Close)
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { close(serve) })
	secret := strings.Repeat("a", 32)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: shop.Certificate().Raw}))
	g := gate(t, unlimited, unhurried, "upstream.tls.ca_file = "+quotedText(file(t, ca)),
		"upstream.targets = "+quoted(strings.Replace(shop.URL, "127.0.0.1", "localhost", 1)), // no name of the certificate
		"auth.jwt_algorithm = \"HS256\"\nauth.jwt_key_file = "+quotedText(file(t, secret)), obeyed)

	hold := func(path, who string, lines ...string) {
		all.Go(func() { g.ask("GET", path, append(lines, "X-Who: "+who)...).must(t, 200, "") })
	}
	queued := func(t *testing.T, n float64, metric string, labels ...string) {
		t.Helper()
		soon(t, "it waits", func() bool { return g.metric(metric, labels...) == n })
	}
	for _, row := range []struct {
		key string
		try func(t *testing.T)
	}{
		{"upstream.tls", func(t *testing.T) { g.ask("GET", "/x").must(t, 200, "") }},
		{"limits.connection.max_requests", func(t *testing.T) {
			c := dial(t, g.front)
			for i, last := range []bool{false, true} {
				if closes := asked(t, c, "GET /page HTTP/1.1\r\nHost: shop\r\n\r\n"); closes != last {
					t.Errorf("request %d of 2 ends its connection: %v", i+1, closes)
				}
			}
		}},
		{"limits.rate.overrides", func(t *testing.T) {
			for uid, want := range map[string]int{"7": 1, "vip-1": 3, "vip-2": 3, "tester": 6} {
				n := 0
				for range 6 {
					if g.ask("GET", "/x", "Cookie: uid="+uid).is(200, "") {
						n++
					}
				}
				if n != want {
					t.Errorf("%s: %d of 6 admitted, want %d", uid, n, want)
				}
			}
		}},
		{"limits.rate.max_delay", func(t *testing.T) {
			for range 3 {
				all.Go(func() { g.ask("GET", "/paced").must(t, 200, "") })
			}
			all.Wait()
		}},
		{"route.sku_form", func(t *testing.T) {
			g.ask("POST", "/digits/07").must(t, 400, "bad_request")
		}},
		{"stock.sold_out_on", func(t *testing.T) {
			g.ask("POST", "/digits/7").must(t, 200, "") // hears it from the shop
			g.ask("POST", "/digits/7").must(t, 409, "sold_out")
			if s, _ := g.shows("/7"); s.Phase != "sold_out" || s.Left != "none" {
				t.Errorf("a page is told %+v", s)
			}
		}},
		{"route.max_in_flight", func(t *testing.T) {
			hold("/search", "one")
			<-arrived
			hold("/search", "two")
			queued(t, 1, "sluice_route_queue_length", `route="search"`)
			g.ask("GET", "/x").must(t, 200, "") // the second slot is not for a second search
			serve <- struct{}{}
			<-arrived
			serve <- struct{}{}
			all.Wait()
		}},
		{"limits.concurrency.priority", func(t *testing.T) {
			for _, who := range []string{"one", "two"} {
				hold("/x", who)
				<-arrived
			}
			hold("/x", "plain", "Authorization: Bearer "+signedBy(secret, `"level":"new",`))
			queued(t, 1, "sluice_queue_length")
			hold("/x", "vip", "Authorization: Bearer "+signedBy(secret, `"level":"vip",`))
			queued(t, 2, "sluice_queue_length")
			for _, want := range []string{"vip", "plain"} {
				serve <- struct{}{}
				if who := <-arrived; who != want {
					t.Errorf("%s is served, want %s", who, want)
				}
			}
			serve <- struct{}{}
			serve <- struct{}{}
			all.Wait()
		}},
		{"upstream.health.path", func(t *testing.T) {
			sick.Store(true)
			soon(t, "the target is down", func() bool { return g.metric("sluice_upstream_up") == 0 })
			wants(t, g.readiness(), "FAIL upstream: 0 of 1 targets up", "not ready")
			sick.Store(false)
			soon(t, "the target is up", func() bool { return g.ready() && g.ask("GET", "/x").is(200, "") })
		}},
		{"server.shutdown_timeout", func(t *testing.T) {
			c := dial(t, g.front)
			if _, err := io.WriteString(c, "GET /x HTTP/1.1\r\nHost: shop\r\nX-Who: last\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			<-arrived
			g.terminate()
			inTime(t, long/2, "the request is cut off, before the time that is usual", g.gone)
			if code := g.stopped(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			g.logs(t, "cut off", `"connections":1`, `"stopped"`)
		}},
	} {
		if !t.Run(row.key, row.try) {
			return // what it holds would disturb the others
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

// The keys of a shop that keeps its stock in Redis: one list of buyers for all SKUs, a replica, the stock of a sale.
func TestKeys_OfTheShopsStockReachTheirParts(t *testing.T) {
	t.Parallel()
	master, shop := redistest.Start(t, "--repl-diskless-sync-delay", "0"), open(t, nil)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Start(t, "--replicaof", host, port)
	for _, sku := range []string{"1001", "1002"} {
		master.Client.RPush(t.Context(), "goods_store:"+sku, 1, 1, 1)
	}
	master.Client.SAdd(t.Context(), "order_user_list", "7")
	g := gate(t, shop.setting(), redisAt(master), unlimited, `stock.layout.type = "list"`,
		`stock.layout.key = "goods_store:$sku"`, `stock.layout.users_key = "order_user_list"`,
		"stock.redis.replicas = "+quoted(replica.Addr), `stock.redis.max_staleness = "30s"`,
		routes+hours("later", "2099", `"9"`, "stock = { 9 = 4 }"))
	soon(t, "the list of a sale that comes is filled",
		func() bool { return master.Client.LLen(t.Context(), "goods_store:9").Val() == 4 })
	soon(t, "the replica is read", func() bool { return g.metric("sluice_redis_replica_read") == 1 })
	before := master.Calls("llen")
	for _, sku := range []string{"1001", "1002"} {
		g.order(sku).must(t, 409, "duplicate") // user 7
		g.ask("POST", "/api/seckill/"+sku+"/order", "Cookie: uid=8").must(t, 200, "")
	}
	if n := master.Calls("llen") - before; n != 0 || replica.Calls("llen") == 0 {
		t.Errorf("the master was read %d times", n)
	}
	if n := shop.arrivals.Load(); n != 2 {
		t.Errorf("%d orders reached the shop, want 2", n)
	}
}
