package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// replace changes the file of a gate, and waits until it is read.
func (g *running) replace(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(g.file)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("the file has no %q: %v", from, err)
	}
	g.rewrite(strings.Replace(string(text), from, to, 1), true)
}

// A route is switched to the queue and back while it sells. What waits is delivered by the pace that is reloaded.
func TestDelivery_ReloadSwitchesBetweenDirectAndQueue(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	g := gate(t, redisAt(r), boundless, shop.patient(shop.server.URL), "queue.rate = 0", reserveRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "50")
	buy := func(i int) waiting {
		return g.call(t, "POST", orderPath, "", "Cookie", fmt.Sprint("uid=", i))
	}
	if w := buy(0); w.status != 201 {
		t.Fatalf("direct: %+v", w)
	}
	paced := time.Now()
	g.replace(t, "queue.rate = 0", "queue.rate = 1")
	g.replace(t, "gate = \"reserve\"\n", "gate = \"reserve\"\ndelivery = \"queue\"\n")
	for i := 1; i <= 20; i++ {
		if w := buy(i); w.status != 202 {
			t.Fatalf("queue: %+v", w)
		}
	}
	g.replace(t, "delivery = \"queue\"", "delivery = \"direct\"")
	if w := buy(21); w.status != 201 {
		t.Errorf("direct again: %+v", w)
	}
	q, made := queueOf(t, g), shop.orders()
	if passed := time.Since(paced); q.Rate != 1 || made > 5+int(passed/time.Second) {
		t.Errorf("rate %d, %d orders made in %v: the rest should wait", q.Rate, made, passed)
	}
	g.replace(t, "queue.rate = 1", "queue.rate = 1000")
	soon(t, "what waits is delivered", func() bool { return ledgerOf(t, r, "1001") == account{total: 50, sold: 22} })
	if d := shop.doubles(); len(d) > 0 || shop.orders() != 22 {
		t.Errorf("%d orders; twice: %v", shop.orders(), d)
	}
}

// Redis is restarted while orders wait and are under way; it has an AOF, and no gate died. All are made, none twice.
func TestDelivery_RedisThatRestartsLosesNoOrder(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t, lasting...), openLameShop(t)
	shop.slow = 100 * time.Millisecond
	g := gate(t, redisAt(r), boundless, shop.settings(shop.server.URL), "queue.max_in_flight = 4", waitingRoutes)
	const n = 60
	ok(t, "stock", "set", "--config", g.file, "1001", fmt.Sprint(n))
	for i := range n {
		if w := g.call(t, "POST", orderPath, "", "Cookie", fmt.Sprint("uid=", i)); w.status != 202 {
			t.Fatalf("%+v", w)
		}
	}
	soon(t, "some are made", func() bool { return shop.orders() > 5 })
	r.Kill()
	r.Restart()
	soon(t, "all are made", func() bool { return shop.orders() == n })
	soon(t, "and confirmed", func() bool { return ledgerOf(t, r, "1001") == account{total: n, sold: n} })
	if d := shop.doubles(); len(d) > 0 {
		t.Errorf("made twice: %v", d)
	}
}

// The gate that accepted the orders is gone, and the next one has no route with a queue. What was promised is
// delivered.
func TestDelivery_RestartWithoutAQueueDeliversWhatWaits(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	const n = 30
	slow := gate(t, redisAt(r), boundless, shop.patient(nowhere(t)), waitingRoutes) // no order can be delivered yet
	ok(t, "stock", "set", "--config", slow.file, "1001", "50")
	for i := range n {
		if w := slow.call(t, "POST", orderPath, "", "Cookie", fmt.Sprint("uid=", i)); w.status != 202 {
			t.Fatalf("%+v", w)
		}
	}
	slow.terminate()
	slow.stopped()
	direct := gate(t, redisAt(r), boundless, shop.patient(shop.server.URL), reserveRoutes)
	soon(t, "what waits is delivered", func() bool { return ledgerOf(t, r, "1001") == account{total: 50, sold: n} })
	if d := shop.doubles(); len(d) > 0 || shop.orders() != n {
		t.Errorf("%d orders; twice: %v", shop.orders(), d)
	}
	soon(t, "the queue is told as empty", func() bool { return queueOf(t, direct).Waiting == 0 })
	if w := direct.call(t, "POST", orderPath, "", "Cookie", "uid=direct"); w.status != 201 {
		t.Errorf("an order of now: %+v", w)
	}
}
