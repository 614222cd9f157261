package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy"
)

// waitingRoutes are routes whose orders wait until they are delivered.
var waitingRoutes = strings.Replace(reserveRoutes, "gate = \"reserve\"",
	"gate = \"reserve\"\ndelivery = \"queue\"", 1)

// queueOf is the queue as the control API of a gate tells it.
func queueOf(t *testing.T, g *running) (s admin.QueueState) {
	t.Helper()
	if text := g.control("GET", "/api/v1/queue", "").body; json.Unmarshal([]byte(text), &s) != nil || !s.Enabled {
		t.Errorf("GET /api/v1/queue: %s", text)
	}
	return s
}

// TestDelivery_MakesEachOrderOnceThoughGatesDie is the promise of the queue: gates are killed at any time, the
// shop hangs and loses answers and looks at no key. SLUICE_DELIVERIES=100000 is the long form, in which Redis is
// restarted, too: an operator opens the SKU then, since an instance that died shortly before may know more than Redis.
func TestDelivery_MakesEachOrderOnceThoughGatesDie(t *testing.T) {
	testkit.Nightly(t, "it kills at random moments")
	n, _ := strconv.Atoi(cmp.Or(os.Getenv("SLUICE_DELIVERIES"), "400"))
	const buyers, backlog = 24, 500
	limit, restartEach := 32, n // orders in the shop at once; orders between two restarts of Redis
	if n > 10_000 {
		limit, restartEach = 96, n/6
	}
	r, shop := redistest.Start(t, lasting...), openLameShop(t)
	shop.hangs, shop.slow, shop.loses = 0.04, 600*time.Millisecond, 0.03
	var fronts []string
	var gates []*running
	for range 2 {
		addresses, front := fixed(t)
		g := gate(t, redisAt(r), boundless, addresses, shop.settings(shop.server.URL),
			fmt.Sprint("queue.max_in_flight = ", limit), waitingRoutes)
		fronts, gates = append(fronts, front), append(gates, g)
	}
	ok(t, "stock", "set", "--config", gates[0].file, "1001", strconv.Itoa(n))
	begun := time.Now()
	end := begun.Add(6*long + time.Duration(n)*20*time.Millisecond)
	var next, sure atomic.Int64
	var all sync.WaitGroup
	for range buyers {
		all.Go(func() {
			b := &buyer{}
			defer b.leave()
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				for i > shop.orders()+backlog && time.Now().Before(end) {
					time.Sleep(pause) // the crowd's, for a backlog that is not too long
				}
				b.user, b.key = strconv.Itoa(i), fmt.Sprintf("key-%d", i)
				if b.insistToWait(fronts, end) {
					sure.Add(1)
				}
			}
		})
	}
	kills, restarts := 0, 0
	ledger := func() account { return ledgerOf(t, r, "1001") }
	for ledger().sold < n && time.Now().Before(end) {
		time.Sleep(time.Duration(50+rand.IntN(400)) * time.Millisecond) // between two deaths
		if i := kills % 2; kills < max(4, n/25) {
			gates[i].die()
			gates[i] = gates[i].again(t)
			kills++
		}
		if shop.orders() > (restarts+1)*restartEach {
			restarts++
			r.Kill()
			r.Restart()
			soon(t, "Redis has read its file", func() bool { return r.Client.Get(t.Context(), "-").Err() == redis.Nil })
		}
		reopen(t, r, gates[0])
	}
	all.Wait()
	t.Logf("%d orders, %d attempts, %d gates killed, Redis restarted %d times, at most %d of %d in the shop, in %v",
		shop.orders(), shop.attempts.Load(), kills, restarts, shop.most.Load(), limit, time.Since(begun))
	if a := ledger(); a.sold != n || a.held != 0 || int(sure.Load()) != n {
		t.Errorf("ledger %+v, %d buyers know that they are served; want all of %d", a, sure.Load(), n)
	}
	if d := shop.doubles(); len(d) > 0 || shop.orders() != n {
		t.Errorf("%d orders of %d; made twice: %v", shop.orders(), n, d)
	}
	if shop.most.Load() > int64(limit) {
		t.Errorf("%d orders in the shop at once", shop.most.Load())
	}
	checkAnswers(t, r, n)
}

// reopen opens a SKU that is frozen since a gate died shortly before Redis: this Redis loses nothing.
func reopen(t *testing.T, r *redistest.Server, g *running) {
	if state, err := r.Client.HGet(t.Context(), "sluice:shop:{1001}:s", "state").Result(); err == nil &&
		state == "frozen" {
		_ = run(t, "", "stock", "recover", "--config", g.file, "--from", "none", "--apply", "1001") // the next turn tries again
	}
}

// checkAnswers wants each kept answer to be that of its order. One that was lost has left no answer.
func checkAnswers(t *testing.T, r *redistest.Server, n int) {
	found := 0
	for _, name := range []string{"t0", "t1", "t2"} {
		answers, err := r.Client.HGetAll(t.Context(), "sluice:shop:{1001}:"+name).Result()
		if err != nil {
			t.Fatal(err)
		}
		for serial, text := range answers {
			found++
			a, err := proxy.DecodeKeptAnswer(text)
			want := fmt.Sprintf("order %s of uid=%s", serial, strings.TrimPrefix(serial, "key-"))
			if err != nil || a.Status == 201 && a.Body != want {
				t.Errorf("the answer to %s is %+v, %v", serial, a, err)
			}
		}
	}
	t.Logf("%d answers are kept, and each is that of its order", found)
	if found < min(n/2, 100) {
		t.Errorf("%d answers of %d are kept", found, n)
	}
}

// insistToWait buys until it is sure that the order is accepted.
func (b *buyer) insistToWait(fronts []string, until time.Time) bool {
	for i := rand.IntN(len(fronts)); time.Now().Before(until); i++ {
		status, reason := b.buy(fronts[i%len(fronts)])
		if status == http.StatusAccepted || reason == "in_progress" || reason == "confirmed" {
			return true
		}
		time.Sleep(pause) // the client's
	}
	return false
}

// waiting is what a gate says of an order.
type waiting struct {
	Serial, SKU, State string
	Ahead              int64
	Answer             *struct {
		Status  int
		Headers map[string]string
		Body    string
	}
	status int
	header http.Header
	text   string
}

// call asks a gate, as user with a key and other header fields.
func (g *running) call(t *testing.T, method, path, body string, fields ...string) (w waiting) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+g.front+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	client := *g.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a, err := send(&client, req)
	if err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal([]byte(a.body), &w) // of JSON alone
	w.status, w.header, w.text = a.status, a.header, a.body
	return w
}

const orderPath = "/api/seckill/1001/order"

func TestDelivery_ShowsTheAnswerToWhoWasToldOfTheOrder(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	open := make(chan bool)
	opened := sync.OnceFunc(func() { close(open) })
	t.Cleanup(opened)
	shop.answer = func(http.ResponseWriter, *http.Request) bool { <-open; return true }
	// The first order is with the shop while the test asks all that follows.
	settings := strings.ReplaceAll(shop.settings(shop.server.URL), `imeout = "300ms"`, `imeout = "60s"`)
	g := gate(t, redisAt(r), boundless, settings,
		"queue.max_in_flight = 1\nqueue.max_order = \"1KiB\"", waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "3")
	buy := func(user string, more ...string) waiting {
		return g.call(t, "POST", orderPath, "body of "+user,
			append(more, "Cookie", "uid="+user, "Idempotency-Key", "key-"+user)...)
	}
	first := buy("ann")
	where := first.header.Get("Location")
	if first.status != 202 || first.State != "queued" || first.Serial != "key-ann" || !strings.Contains(where, "proof=") ||
		first.header.Get("Retry-After") == "" || !strings.Contains(first.header.Get("Link"), `rel="status"`) {
		t.Fatalf("%+v", first)
	}
	soon(t, "it is handed over", func() bool { return g.call(t, "GET", where, "").State == "delivering" })
	second, third := buy("bob"), buy("eve")
	soon(t, "the control API tells of all", func() bool {
		q := queueOf(t, g)
		return q.Waiting == 2 && q.Delivering == 1 && q.OldestMS > 0 && len(q.SKUs) == 1 && q.SKUs[0].SKU == "1001" &&
			q.MaxInFlight == 1
	})
	if again := buy("bob"); again.status != 409 || again.header.Get("X-Sluice-Reason") != "in_progress" {
		t.Errorf("a repetition: %+v", again)
	}
	if late := buy("zoe"); late.header.Get("X-Sluice-Reason") != "undecided" {
		t.Errorf("there is no unit, but some may come back: %+v", late)
	}
	if w := g.call(t, "GET", third.header.Get("Location"), ""); w.State != "queued" || w.Ahead != 1 {
		t.Errorf("the last in the queue: %+v", w)
	}
	if w := g.call(t, "DELETE", "/.sluice/orders/key-bob?sku=1001", ""); w.status != 403 {
		t.Errorf("another client cancels: %+v", w)
	}
	if w := g.call(t, "DELETE", second.header.Get("Location"), ""); w.status != 200 || w.State != "cancelled" {
		t.Errorf("cancel: %+v", w)
	}
	if w := g.call(t, "DELETE", where, ""); w.status != 409 || w.State != "delivering" {
		t.Errorf("cancel of what was handed over: %+v", w)
	}
	page := g.call(t, "GET", where, "", "Accept", "text/html", "Accept-Language", "en")
	if !strings.Contains(page.text, "Your order is being placed") || page.header.Get("Refresh") == "" {
		t.Errorf("the page: %+v", page)
	}
	large := g.call(t, "POST", orderPath, strings.Repeat("x", 2000), "Cookie", "uid=max")
	if large.status != 413 {
		t.Errorf("a large body: %+v", large)
	}
	parked := make(chan waiting)
	go func() { parked <- g.call(t, "GET", where, "", "Prefer", "wait=20") }()
	opened()
	if w := <-parked; w.State != "sold" || w.Answer == nil || w.Answer.Status != 201 ||
		w.Answer.Body != "order key-ann of uid=ann" || w.Answer.Headers["Content-Type"] != "text/plain" {
		t.Errorf("who waits hears: %+v", w)
	}
	if w := g.call(t, "GET", "/.sluice/orders/key-ann?sku=1001", ""); w.State != "sold" || w.Answer != nil {
		t.Errorf("another client hears: %+v", w)
	}
	if w := g.call(t, "GET", where, "", "Accept", "text/html"); w.status != 201 || w.text != "order key-ann of uid=ann" {
		t.Errorf("a browser sees: %+v", w)
	}
	soon(t, "the last is delivered", func() bool { return ledgerOf(t, r, "1001") == account{total: 3, sold: 2} })
	if got := shop.bodies["key-eve"]; got != "body of eve" {
		t.Errorf("the shop got %q", got)
	}
}

func TestDelivery_SlowsDownWhenTheShopIsBusyAndWaitsWhileItIsAway(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	var busy atomic.Int64
	shop.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		if busy.Add(1) <= 3 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return false
		}
		return true
	}
	address := testkit.FreeAddress(t)
	g := gate(t, redisAt(r), boundless, shop.patient("http://"+address), waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "5")
	for i := range 5 {
		if w := g.call(t, "POST", orderPath, "", "Cookie", fmt.Sprint("uid=", i)); w.status != 202 {
			t.Fatalf("%+v", w)
		}
	}
	soon(t, "it is tried", func() bool {
		return g.metric("sluice_delivery_attempts_total", `outcome="unsent"`) > 0
	})
	listener := testkit.Listen(t, address)
	back := &http.Server{Handler: shop.server.Config.Handler}
	go func() { _ = back.Serve(listener) }()
	t.Cleanup(func() { back.Close() })
	soon(t, "all are delivered", func() bool { return ledgerOf(t, r, "1001") == account{total: 5, sold: 5} })
	if d := shop.doubles(); len(d) > 0 || shop.orders() != 5 {
		t.Errorf("%d orders; twice: %v", shop.orders(), d)
	}
	g.wantMetric(3, "sluice_delivery_attempts_total", `outcome="again"`)
}

// The shop's own word about its stock stops orders of the queue as those that are forwarded.
func TestDelivery_ShopThatIsSoldOutGetsNoMoreOrders(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	shop.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Sluice-Order", "sold-out")
		w.WriteHeader(http.StatusConflict)
		return false
	}
	g := gate(t, redisAt(r), boundless, shop.settings(shop.server.URL), "stock.sold_out_ttl = \"1m\"", waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "9")
	where := g.call(t, "POST", orderPath, "", "Cookie", "uid=ann", "Idempotency-Key", "key-ann").header.Get("Location")
	soon(t, "it is released", func() bool { return g.call(t, "GET", where, "").State == "released" })
	if next := g.call(t, "POST", orderPath, "", "Cookie", "uid=bob"); next.header.Get("X-Sluice-Reason") != "sold_out" {
		t.Errorf("the next order: %+v", next)
	}
	g.wantMetric(1, "sluice_shop_sold_out_total", `order="held"`)
}

func TestDelivery_StuckOrderWaitsForAPerson(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	var asked atomic.Int64
	shop.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		if asked.Add(1) > 1 {
			return true
		}
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			c.Close() // it has made no order, and the gate cannot know that
		}
		return false
	}
	settings := strings.Replace(shop.settings(shop.server.URL), "stock.reserve.status_url", "# ", 1)
	settings = strings.Replace(settings, "stock.reserve.on_not_found", "# ", 1)
	settings = strings.ReplaceAll(settings, `imeout = "300ms"`, `imeout = "5s"`) // for the attempt of the end
	g := gate(t, redisAt(r), boundless, settings, waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "1")
	w := g.call(t, "POST", orderPath, "", "Cookie", "uid=ann", "Idempotency-Key", "key-ann")
	where := w.header.Get("Location")
	soon(t, "it is stuck", func() bool { return g.call(t, "GET", where, "").State == "stuck" })
	g.logs(t, "an order is stuck", "sluice reservation requeue")
	if n := shop.attempts.Load(); n != 1 {
		t.Errorf("%d attempts though the outcome of the first is unknown", n)
	}
	wants(t, ok(t, "reservation", "list", "--config", g.file, "--stuck"), "key-ann")
	soon(t, "the control API counts it", func() bool { return queueOf(t, g).Stuck == 1 })
	wants(t, ok(t, "reservation", "requeue", "--config", g.file, "--sku", "1001", "key-ann"), "held")
	soon(t, "it is delivered", func() bool { return g.call(t, "GET", where, "").State == "sold" })
	if s := run(t, "", "reservation", "requeue", "--config", g.file, "--sku", "1001", "key-ann"); s.code == 0 {
		t.Errorf("a confirmed order is delivered again: %+v", s)
	}
}

// A gate that is told to stop takes no more orders, and hears what became of those that the shop has.
func TestDelivery_ShutdownAwaitsTheAnswersOfTheShop(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	asked := make(chan struct{})
	shop.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-asked:
		case <-r.Context().Done(): // the gate has left
		}
		return true
	}
	settings := strings.Replace(shop.settings(shop.server.URL), "stock.reserve.status_url", "# ", 1)
	settings = strings.Replace(settings, "stock.reserve.on_not_found", "# ", 1)
	settings = strings.ReplaceAll(settings, `imeout = "300ms"`, `imeout = "60s"`)
	settings += "server.shutdown_delay = \"0s\"\n"
	g := gate(t, redisAt(r), boundless, settings, waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "5")
	for i := range 5 {
		if w := g.call(t, "POST", orderPath, "", "Cookie", fmt.Sprint("uid=", i)); w.status != 202 {
			t.Fatalf("%+v", w)
		}
	}
	soon(t, "the shop has all", func() bool { return shop.inside.Load() == 5 })
	g.terminate()
	g.logs(t, `"waiting for the requests in flight","at_upstream":5`, `"at_most":"20s"`)
	time.Sleep(time.Second) // nothing tells that it stays: it would have left by now
	close(asked)
	if code := g.stopped(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := ledgerOf(t, r, "1001"); got != (account{total: 5, sold: 5}) {
		t.Errorf("%+v: the gate left before the shop had answered", got)
	}
}

// The gate is killed while the shop has some orders, of which it has made one, and others wait. The next gate asks
// about the first ones, sends again what the shop cannot make any more, and delivers what waits.
func TestDelivery_KilledGateLosesNoOrderAndMakesNoneTwice(t *testing.T) {
	t.Parallel()
	const n, inside = 12, 4
	r, shop := redistest.Start(t, lasting...), openLameShop(t)
	var dead atomic.Bool
	shop.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if dead.Load() {
			return true
		}
		if r.Header.Get("Idempotency-Key") == "key-0" {
			shop.make(r, "")
		}
		<-r.Context().Done() // the gate has died
		return false
	}
	settings := strings.ReplaceAll(shop.settings(shop.server.URL), `imeout = "300ms"`, `imeout = "1s"`)
	g := gate(t, redisAt(r), boundless, settings, fmt.Sprint("queue.max_in_flight = ", inside), waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", strconv.Itoa(n))
	for i := range n {
		w := g.call(t, "POST", orderPath, "", "Cookie", fmt.Sprint("uid=", i), "Idempotency-Key", fmt.Sprint("key-", i))
		if w.status != http.StatusAccepted {
			t.Fatalf("%+v", w)
		}
	}
	soon(t, "the shop has as many as it may", func() bool { return shop.inside.Load() == inside })
	g.die()
	dead.Store(true)
	g.again(t)
	soon(t, "all are sold", func() bool { return ledgerOf(t, r, "1001") == account{total: n, sold: n} })
	if d := shop.doubles(); len(d) > 0 || shop.orders() != n {
		t.Errorf("%d orders; made twice: %v", shop.orders(), d)
	}
}
