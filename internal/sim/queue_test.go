package sim

// Time in this file is virtual (testing/synctest).

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
	"sluice/queue"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

const (
	grace    = 200 * time.Millisecond
	attempts = 20 // more than the faults of a schedule can use up
)

// openQueue opens the real deliverer of an instance: orders wait in the ledger, and it sends them to the shop.
func (g *gateway) openQueue() {
	rules := proxy.OutcomeRules{ConfirmOn: []string{"2xx"}, ReleaseOn: []string{"4xx"}}
	g.queue = queue.New(queue.Options{
		Store: g.store, Send: g.send, Outcome: rules.Outcome, Ask: g.w.shop.Ask, Fenced: true,
		MaxInFlight: 2, Attempts: attempts, Timeout: timeout, Grace: grace,
		Keep: keep * time.Millisecond, Settled: g.reserver.Delivered,
		Settle: func(sku, serial string, op ledger.Op) {
			g.reserver.Settle(sku, serial, op)
		},
		Log: g.w.log,
	})
}

// request is the order of the n-th buyer as it waits in the ledger: it is delivered before its hold ends, or expires.
func request(n int, hold time.Duration) string {
	m := proxy.QueuedRequest{Method: "POST", Target: "/order", Fields: []proxy.KeptField{{Name: "Host", Value: "shop"}},
		HasBody: true, Body: strconv.Itoa(n)}
	return ledger.NewRequest(time.Now().Add(hold-2*timeout).UnixMilli(), m.Text())
}

// send is one attempt of the deliverer. The answer to a first attempt may be lost.
func (g *gateway) send(req *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
	if g.w.isDead(g) {
		return upstream.NotSent
	}
	h := &req.HTTP.Header
	n, err := strconv.Atoi(string(req.HTTP.Body()))
	if err != nil {
		g.w.t.Errorf("an order waited, and its body is %q", req.HTTP.Body())
		return upstream.NotSent
	}
	b := g.w.bought[n]
	serial, attempt := string(h.Peek("Idempotency-Key")), string(h.Peek("Sluice-Attempt"))
	deadline, _ := strconv.ParseInt(string(h.Peek("Sluice-Deadline")), 10, 64)
	g.w.tell("%s attempt %s of %s", g.name, attempt, serial)
	g.w.shop.attempt(serial, &b, time.UnixMilli(deadline))
	if g.w.struck.CompareAndSwap(int64(n)+1, 0) {
		g.w.background.Go(func() { g.w.outage(g) })
	}
	time.Sleep(min(b.answer, timeout)) // of synctest
	if g.w.isDead(g) || b.answer > timeout || b.after > b.answer || b.lost && attempt == "1" {
		return upstream.TimedOut
	}
	resp.SetStatusCode(fasthttp.StatusConflict)
	if _, made := g.w.shop.has(serial); made {
		resp.SetStatusCode(fasthttp.StatusCreated)
	}
	return upstream.Answered
}
