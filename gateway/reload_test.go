package gateway

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
)

// changing is the i-th of many configurations. They differ in limits, routes, the layout of the stock, targets, times,
// reservations and tokens, and have one rate in common.
func changing(t *testing.T, i int, redis string, shops [2]*httptest.Server) *config.Config {
	t.Helper()
	targets := fmt.Sprintf("%q", shops[i%2].URL)
	if i%3 == 0 {
		targets = fmt.Sprintf("%q, %q", shops[0].URL, shops[1].URL)
	}
	extra := ""
	if i%2 == 1 {
		extra = "[[route]]\nname = \"extra\"\nmatch = \"GET /extra\"\ngate = \"limit\"\nmax_in_flight = 9\n"
	}
	text := fmt.Sprintf(`name = "shop"
[server]
listen = ["127.0.0.1:0"]
idle_timeout = "%ds"
max_header_size = "%dKiB"
[upstream]
targets = [%s]
[limits.connection]
request_rate = "1000000/s"
request_burst = 1000000
[limits.window]
max = %d
max_per_sku = 0
[limits.concurrency]
max_in_flight = %d
queue_timeout = "20s"
max_queue = 1000
[[limits.rate]]
name = "all"
key = "$remote_addr"
rate = "1/h"
burst = 500000
%s[[route]]
name = "order"
match = "POST /order/{sku}"
gate = "reserve"
sku = "$path_sku"
[[route]]
name = "checked"
match = "POST /checked/{sku}"
gate = "check"
sku = "$path_sku"
[[route]]
name = "pages"
match = "/"
gate = "pass"
[stock]
source = "redis"
poll_interval = "%dms"
[stock.redis]
addresses = [%q]
timeout = "20s"
[stock.layout]
key = "%s:$sku"
[stock.reserve]
reservation_ttl = "%dm"
confirm_on = ["2xx"]
[traces]
sample_ratio = 0.%d
`, 60+i%5, 16+i%4, targets, 1_000_000+i%4, 100+i%7, extra, 5+i%3, redis, []string{"a", "b"}[i%2],
		30+i%2, 1+i%9)
	return parsed(t, text)
}

func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("config.toml", []byte(text), config.NoEnvironment, Validate)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Apply reloads, as if the files now said c. One goroutine at a time may call it.
func (g *Gateway) Apply(c *config.Config) error {
	h := g.controller
	h.load, h.files = func() (*config.Config, error) { return c, nil }, &configFiles{}
	_, err := h.reload(false, false)
	if bad := (*admin.BadFile)(nil); errors.As(err, &bad) {
		return errors.New(bad.Text())
	}
	return err
}

func twoShops(t *testing.T, answer http.HandlerFunc) (shops [2]*httptest.Server) {
	for i := range shops {
		shops[i] = httptest.NewServer(answer)
		t.Cleanup(shops[i].Close)
	}
	return shops
}

// 40 configurations follow each other under load: no request fails, and no count is lost, in memory, in Redis or at the
// shop.
func TestApply_FortyTimesUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, key := range []string{"a:1", "b:1"} {
		redis.Client.Set(t.Context(), key, 1000, 0)
	}
	var orders sync.Map
	shops := twoShops(t, func(_ http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			if _, twice := orders.LoadOrStore(key, true); twice {
				t.Errorf("order %s came twice", key)
			}
		}
	})
	g := gatewayOf(t, changing(t, 0, redis.Addr, shops))
	if _, err := g.Orders().Store.SetTotal(t.Context(), "1", 10_000_000, 0); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.Listen([]net.Listener{ln}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { g.Drain(time.Minute) })

	var sent [3]atomic.Int64 // orders, checked, pages
	stop := make(chan struct{})
	var crowd sync.WaitGroup
	for client := range 4 {
		crowd.Go(func() {
			c := &http.Client{Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				r, _ := http.NewRequest("POST", "http://"+ln.Addr().String()+[]string{"/order/1", "/checked/1", "/"}[n%3], nil)
				if n%3 == 0 {
					r.Header.Set("Idempotency-Key", fmt.Sprintf("client-%d-order-%d", client, n))
				}
				resp, err := c.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Errorf("%s: %d %s", r.URL, resp.StatusCode, text)
					return
				}
				sent[n%3].Add(1)
			}
		})
	}
	for i := 1; i <= 40 && !t.Failed(); i++ {
		before := sent[0].Load()
		if err := g.Apply(changing(t, i, redis.Addr, shops)); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "orders go on", func() bool { return t.Failed() || sent[0].Load() >= before+4 })
	}
	close(stop)
	crowd.Wait()
	placed, gated := sent[0].Load(), sent[0].Load()+sent[1].Load()
	testkit.Eventually(t, "each order is sold", func() bool {
		s, _, err := g.Orders().Store.ReadStock(t.Context(), "1")
		return err == nil && s.Held == 0 && s.Sold == placed
	})
	atShop := int64(0)
	orders.Range(func(any, any) bool { atShop++; return true })
	if atShop != placed {
		t.Errorf("the shop has %d orders, the clients %d", atShop, placed)
	}
	s, err := g.limits.Key(g.running.Load(), "all", []string{"127.0.0.1"}, false)
	if err != nil || int64(s.Max-s.Left) != gated {
		t.Errorf("the rate has counted %d, %v; want %d", s.Max-s.Left, err, gated)
	}
	if all := g.Server.Totals(); int64(all.Forwarded) != gated+sent[2].Load() || g.limits.InFlight() != 0 {
		t.Errorf("%d requests were counted, %d in flight; want %d, 0", all.Forwarded, g.limits.InFlight(),
			gated+sent[2].Load())
	}
}

// A part of a configuration that cannot be made leaves all as it was.
func TestApply_ChangesAllOrNothing(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	shops := twoShops(t, http.NotFound)
	g := gatewayOf(t, changing(t, 0, redis.Addr, shops))
	before, handler := g.running.Load(), g.proxy
	next := changing(t, 1, redis.Addr, shops)
	next.AccessLog.Output = "file:" + t.TempDir() + "/none/access.log"
	if err := g.Apply(next); err == nil || g.running.Load() != before || g.proxy != handler {
		t.Errorf("%v; want that nothing has changed", err)
	}
	next = changing(t, 2, redis.Addr, shops)
	next.Stock.Redis.DB++
	if err := g.Apply(next); err == nil ||
		!strings.Contains(err.Error(), "stock.redis.db: changes only with a restart") {
		t.Errorf("%v; want that it needs a restart", err)
	}
}

// The first route that reserves opens the ledger.
func TestApply_FirstRouteThatReservesOpensTheLedger(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	shops := twoShops(t, http.NotFound)
	first := changing(t, 0, redis.Addr, shops)
	first.Routes = first.Routes[1:]
	g := gatewayOf(t, first)
	if g.Orders() != nil {
		t.Fatal("there is a ledger, and no route reserves")
	}
	if err := g.Apply(changing(t, 2, redis.Addr, shops)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Orders().Store.SetTotal(t.Context(), "1", 5, 0); err != nil || g.reserver() == nil {
		t.Errorf("%v; want a ledger that is open", err)
	}
}

// What [stock.reserve] says of the next order holds from a reload on.
func TestApply_ReservationSettingsAreLive(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	var asked atomic.Int64
	shops := twoShops(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/status/unknown" {
			asked.Add(1)
		}
	})
	with := func(lines string) *config.Config {
		return parsed(t, fmt.Sprintf(`name = "shop"
upstream.targets = [%q]
stock.source = "redis"
stock.redis.addresses = [%q]
[stock.reserve]
confirm_on = ["2xx"]
%s
[[route]]
name = "order"
match = "POST /order/{sku}"
gate = "reserve"
sku = "$path_sku"
`, shops[0].URL, redis.Addr, lines))
	}
	g := gatewayOf(t, with("max_per_user = 1"))
	testkit.Eventually(t, "the ledger is open", func() bool { return g.Orders().Reserver() != nil })
	if _, err := g.Orders().Store.SetTotal(t.Context(), "1", 10, 5); err != nil {
		t.Fatal(err)
	}
	order := func() proxy.Reservation {
		return g.Orders().Reserve(g.now(), ledger.Order{SKU: []byte("1"), User: []byte("7"), Quantity: 1})
	}
	first := order()
	if first.Reason != reject.Admitted {
		t.Fatal(first.Reason)
	}
	g.Orders().Settle(ledger.Order{SKU: []byte("1")}, first.Serial, metrics.OrderConfirmed)
	testkit.Eventually(t, "the first order is sold", func() bool { return order().Reason == reject.Duplicate })
	other := fmt.Sprintf("max_per_user = 2\nstatus_url = %q", shops[0].URL+"/status/{serial}")
	if err := g.Apply(with(other)); err != nil {
		t.Fatal(err)
	}
	if second := order(); second.Reason != reject.Admitted || second.Serial == first.Serial {
		t.Errorf("a second order of two: %+v", second)
	}
	key := ledger.Order{SKU: []byte("1"), Key: []byte("unknown"), Quantity: 1}
	if held := g.Orders().Reserve(g.now(), key); held.Reason != reject.Admitted {
		t.Fatal(held.Reason)
	}
	g.Orders().Settle(ledger.Order{SKU: []byte("1")}, "unknown", metrics.OrderUnknown)
	testkit.Eventually(t, "the shop is asked", func() bool { return asked.Load() > 0 })
}
