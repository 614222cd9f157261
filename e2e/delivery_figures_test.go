package e2e

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/load"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// scaled is a number of a test's short form, or what the environment says.
func scaled(variable string, short int) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(variable), strconv.Itoa(short)))
	if err != nil || n < 1 {
		panic(variable + " is no number")
	}
	return n
}

// many sends n orders by so many connections, and calls each with what was answered.
func (g *running) many(t *testing.T, n, connections int, body string, each func(i int, resp *http.Response)) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				req, err := http.NewRequest("POST", "http://"+g.front+orderPath, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Cookie", fmt.Sprint("uid=", i))
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				each(i, resp)
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	all.Wait()
}

// follow waits for the answer to an order, as a client does that parks its question.
func (g *running) follow(client *http.Client, where string) (body string, err error) {
	for {
		req, err := http.NewRequest("GET", "http://"+g.front+where, nil)
		if err != nil {
			return "", err
		}
		req.Header.Set("Prefer", "wait=20")
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if s := string(text); err != nil || strings.Contains(s, `"state":"sold"`) {
			return s, err
		} else if resp.StatusCode == http.StatusTooManyRequests {
			time.Sleep(pause) // the client's, after a rejection
		} else if !strings.Contains(s, `"again_ms"`) {
			return s, fmt.Errorf("it ended as %s", s)
		}
	}
}

// ended is when the shop has made each order, by serial.
type ended struct{ sync.Map }

// A shop that makes 20 orders a second sells all to a crowd: 100 shoppers for each unit. Each buyer gets the shop's
// answer. SLUICE_SHOPPERS=100000 is the long form.
func TestDelivery_SlowShopSellsAllToACrowd(t *testing.T) {
	testkit.Nightly(t, "it measures latencies")
	shoppers := scaled("SLUICE_SHOPPERS", 2000)
	units := shoppers / 100
	r, shop := redistest.Start(t), openLameShop(t)
	var made ended
	shop.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		time.Sleep(200 * time.Millisecond) // 4 at a time: 20 orders a second
		made.Store(r.Header.Get("Idempotency-Key"), time.Now())
		return true
	}
	settings := shop.patient(shop.server.URL)
	g := gate(t, redisAt(r), boundless, settings, "queue.max_in_flight = 4", waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", strconv.Itoa(units))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: units}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var buyers sync.WaitGroup
	var delays []time.Duration
	answers, reasons := 0, map[string]int{}
	var last, lastReserved time.Time
	before, begun := r.Commands(), time.Now()
	g.many(t, shoppers, 64, "", func(i int, resp *http.Response) {
		mu.Lock()
		defer mu.Unlock()
		last = time.Now()
		if resp.StatusCode != http.StatusAccepted {
			reasons[resp.Header.Get("X-Sluice-Reason")]++
			return
		}
		lastReserved = last
		where := resp.Header.Get("Location")
		buyers.Go(func() {
			body, err := g.follow(client, where)
			now := time.Now()
			mu.Lock()
			defer mu.Unlock()
			serial, _, _ := strings.Cut(strings.TrimPrefix(where, "/.sluice/orders/"), "?")
			if at, ok := made.Load(serial); ok {
				delays = append(delays, now.Sub(at.(time.Time)))
			}
			if err == nil && strings.Contains(body, fmt.Sprintf("order %s of uid=%d", serial, i)) {
				answers++
			}
		})
	})
	crowd := r.Commands() - before
	buyers.Wait()
	slices.Sort(delays)
	t.Logf("%d shoppers, %d units: all were told after %v, the last reservation after %v; all made after %v", shoppers,
		units, last.Sub(begun), lastReserved.Sub(begun), time.Since(begun))
	t.Logf("reasons %v; from the shop's answer to the client's: median %v, longest %v; %d Redis commands while the crowd "+
		"came, %d in all", reasons, delays[len(delays)/2], delays[len(delays)-1], crowd, r.Commands()-before)
	if a := ledgerOf(t, r, "1001"); a.sold != units || shop.orders() != units || answers != units {
		t.Errorf("%+v, %d orders, %d buyers have their answer: want %d", a, shop.orders(), answers, units)
	}
	if told := reasons["undecided"] + reasons["sold_out"]; told != shoppers-units {
		t.Errorf("%d of %d heard that no unit is left: %v", told, shoppers-units, reasons)
	}
	soon(t, "who is late hears that all are sold", func() bool { // undecided is believed for a second
		late := g.call(t, "POST", orderPath, "", "Cookie", "uid=late")
		reason := late.header.Get("X-Sluice-Reason")
		if reason != "sold_out" && reason != "undecided" {
			t.Fatalf("when all are sold: %+v", late)
		}
		return reason == "sold_out"
	})
}

// A waiting order takes at most 1.2 KiB and its body in Redis. SLUICE_WAITING=20000 is the long form.
func TestDelivery_WaitingOrderTakesLittleMemory(t *testing.T) {
	testkit.Nightly(t, "it measures memory")
	n := scaled("SLUICE_WAITING", 2000)
	r, shop := redistest.Start(t), openLameShop(t)
	release := make(chan struct{})
	defer close(release)
	shop.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	}
	settings := shop.patient(shop.server.URL)
	g := gate(t, redisAt(r), boundless, settings, "queue.max_in_flight = 1", waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", strconv.Itoa(n))
	const body = 600
	before := r.Number("memory", "used_memory:")
	g.many(t, n, 16, strings.Repeat("x", body), func(_ int, resp *http.Response) {
		if resp.StatusCode != http.StatusAccepted {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
	each := float64(r.Number("memory", "used_memory:")-before) / float64(n)
	t.Logf("%d orders with bodies of %d bytes: %.0f bytes each in Redis", n, body, each)
	if each > 1.2*1024+body {
		t.Errorf("%.0f bytes each", each)
	}
}

// CPU time of the gate and of Redis for an order that waits, beside one that does not. SLUICE_COSTS=20000 is the long
// form.
func TestDelivery_CostsLittleMoreThanDirect(t *testing.T) {
	testkit.Nightly(t, "it measures CPU time")
	n := scaled("SLUICE_COSTS", 300)
	type cost struct{ gate, redis, calls float64 } // µs an order; calls of scripts
	var costs [2]cost
	for i, routes := range []string{reserveRoutes, waitingRoutes} {
		r, shop := redistest.Start(t), openLameShop(t)
		g := gate(t, redisAt(r), boundless,
			shop.patient(shop.server.URL), routes)
		ok(t, "stock", "set", "--config", g.file, "1001", strconv.Itoa(n))
		cpu, redis, calls := g.cpu(), r.CPU(), r.Calls("evalsha")
		g.many(t, n, 32, "body", func(int, *http.Response) {})
		soon(t, "all are made", func() bool { return ledgerOf(t, r, "1001").sold >= n*95/100 })
		costs[i] = cost{(g.cpu() - cpu).Seconds() * 1e6 / float64(n), (r.CPU() - redis) * 1e6 / float64(n),
			float64(r.Calls("evalsha")-calls) / float64(n)}
	}
	direct, queued := costs[0], costs[1]
	t.Logf("%d orders: gate %.0f µs direct, %.0f queued (%.2f x); Redis %.0f µs direct, %.0f queued (%.2f x); calls %.2f "+
		"direct, %.2f queued", n, direct.gate, queued.gate, queued.gate/direct.gate, direct.redis, queued.redis,
		queued.redis/direct.redis, direct.calls, queued.calls)
	if queued.calls > 1.5 { // each order alone would have four
		t.Errorf("%.2f script calls for each order that waits", queued.calls)
	}
}

// cpu is the CPU time of a gate.
func (g *running) cpu() time.Duration {
	g.t.Helper()
	used, err := load.CPU([]int{g.process.Process.Pid})
	if err != nil {
		g.t.Skip(err)
	}
	return used
}

// pss is the memory of the gate in KiB, shared pages counted in part.
func (g *running) pss() int {
	g.t.Helper()
	bytes, err := load.PSS([]int{g.process.Process.Pid})
	if err != nil {
		g.t.Fatal(err)
	}
	return int(bytes >> 10)
}

// Clients that wait for another state, each of its own order, take at most 6 KiB each, and hear of it soon: the 10,000
// of an instance fit in 60 MiB.
func TestDelivery_ParkedClientsTakeLittleMemoryAndHearTheNews(t *testing.T) {
	testkit.Nightly(t, "it measures memory")
	n := scaled("SLUICE_PARKED", 9_999) // and the last
	r, shop := redistest.Start(t), openLameShop(t)
	release := make(chan struct{})
	opened := sync.OnceFunc(func() { close(release) })
	t.Cleanup(opened)
	asked := make(chan string, n) // the serials of the orders that come to the shop
	shop.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		asked <- r.Header.Get("Idempotency-Key")
		<-release
		return true
	}
	settings := strings.ReplaceAll(shop.settings(shop.server.URL), `imeout = "300ms"`, `imeout = "60s"`)
	g := gate(t, redisAt(r), boundless, settings, "queue.max_in_flight = 1", "limits.connection.max_connections = 12000",
		waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", strconv.Itoa(n))
	var mu sync.Mutex
	var places []string
	g.many(t, n, 16, "", func(_ int, resp *http.Response) {
		mu.Lock()
		defer mu.Unlock()
		places = append(places, resp.Header.Get("Location"))
	})
	before := g.pss()
	clients := make([]net.Conn, n)
	for i, where := range places {
		clients[i] = dial(t, g.front)
		fmt.Fprintf(clients[i], "GET %s HTTP/1.1\r\nHost: shop\r\nPrefer: wait=20\r\n\r\n", where)
	}
	soon(t, "all are connected", func() bool { return g.metric("sluice_connections") >= float64(n) })
	calls := r.Commands()
	time.Sleep(time.Second) // what is measured
	each, looks := float64(g.pss()-before)/float64(n), r.Commands()-calls
	t.Logf("%d parked clients: %.1f KiB each, %d commands of Redis in a second", n, each, looks)
	if each > 6 {
		t.Errorf("%.1f KiB each", each)
	}
	// The others may have waited their 20 s before the shop is open: one asks last, for the order that the shop has.
	serial := <-asked
	at := slices.IndexFunc(places, func(where string) bool { return strings.Contains(where, serial) })
	if at < 0 {
		t.Fatalf("no place of %q among %q ...", serial, places[0])
	}
	connections := g.metric("sluice_connections")
	clients = append(clients, dial(t, g.front))
	fmt.Fprintf(clients[n], "GET %s HTTP/1.1\r\nHost: shop\r\nPrefer: wait=20\r\n\r\n", places[at])
	soon(t, "the last is connected", func() bool { return g.metric("sluice_connections") > connections })
	opened()
	confirmed, first, last := 0, time.Now(), ""
	for i, c := range clients {
		_ = c.SetReadDeadline(time.Now().Add(2 * long))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("client %d of %d: %v", i, n, err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || resp.Header.Get("Preference-Applied") != "wait=20" {
			t.Fatalf("client %d: %d, %v, %s", i, resp.StatusCode, err, text)
		}
		if last = string(text); strings.Contains(last, `"state":"sold"`) {
			confirmed++
		}
	}
	t.Logf("all were answered within %v, %d of them with the order confirmed", time.Since(first), confirmed)
	if !strings.Contains(last, `"state":"sold"`) {
		t.Errorf("the confirmation was not announced: %s", last)
	}
}
