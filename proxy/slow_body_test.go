package proxy

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/limiter"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// A request is booked into the window of the instant at which its body is whole, not at which its head came: a client
// that delays its body has no place in a window that has passed, and a crowd of them cannot come in at once. No slot
// and no unit is taken before either.
func TestSlowBody_NothingIsTakenUntilItIsWhole(t *testing.T) {
	for _, gate := range []route.Gate{route.Limit, route.Check, route.Reserve} {
		for _, sku := range []string{"$path_sku", "$json_sku"} {
			name := gate.String() + " " + sku
			var clock, windows, booked, slots atomic.Int64
			o, ledger := reserving(&recorder{})
			o.Routes[0].Gate, o.Routes[0].SKU = gate, sku
			o.Now = clock.Load
			o.Windows = windowFunc(func(now int64, _ []byte) (time.Duration, bool) {
				windows.Add(1)
				booked.Store(now)
				return 0, true
			})
			o.Concurrency = slotFunc(func() reject.Reason { slots.Add(1); return reject.Admitted })
			stock := o.Stock.(*stockMap)
			taken := func() (n int) {
				stock.mu.Lock()
				defer stock.mu.Unlock()
				return int(windows.Load()+slots.Load()) + stock.entered + len(ledger.asked())
			}
			addr, _ := gateway(t, o)
			c := connect(t, addr)
			c.send("POST /api/seckill/1001/order?qty=1 HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\n" +
				"Content-Type: application/json\r\nContent-Length: 14\r\nExpect: 100-continue\r\n\r\n")
			if resp, body := c.receive("POST"); resp.StatusCode != http.StatusContinue { // the body is awaited
				t.Fatalf("%s: %d %s", name, resp.StatusCode, body)
			}
			c.send(`{"sku":`)
			if n := taken(); n != 0 {
				t.Errorf("%s: %d windows, slots and units were taken before the body was whole", name, n)
			}
			const late = 500_000_000
			clock.Store(late)
			c.send(`"1001"}`)
			if resp, body := c.receive("POST"); resp.StatusCode != 200 {
				t.Fatalf("%s: %d %s", name, resp.StatusCode, body)
			}
			if at := booked.Load(); windows.Load() != 1 || at != late || slots.Load() != 1 {
				t.Errorf("%s: booked as of %d, want %d: when the body was whole", name, at, late)
			}
		}
	}
}

// oneSlot is a concurrency limit of one request without a queue.
type oneSlot struct{ taken, acquired, released atomic.Int64 }

func (s *oneSlot) Acquire(limiter.Client, bool) reject.Reason {
	if !s.taken.CompareAndSwap(0, 1) {
		return reject.Concurrency
	}
	s.acquired.Add(1)
	return reject.Admitted
}

func (s *oneSlot) TryAcquire() bool { return s.Acquire(nil, false) == reject.Admitted }

func (s *oneSlot) Peek(bool) bool { return s.taken.Load() == 1 }

func (s *oneSlot) Release(time.Duration) {
	s.released.Add(1)
	s.taken.Store(0)
}

// Clients that send their bodies slowly keep no other client out, and are told so in the end.
func TestSlowBody_HoldsNoSlot(t *testing.T) {
	to, slots := &recorder{}, &oneSlot{}
	o := options(to)
	o.Concurrency = slots
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, p, ServerOptions{ReadTimeout: 2 * time.Second, IdleTimeout: time.Minute})
	var slow []*clientConn
	for _, path := range []string{"/api/seckill/1001/order", "/search/"} {
		for framing, part := range map[string]string{"Content-Length: 9": "slow", "Transfer-Encoding: chunked": "9\r\nslow"} {
			for range 2 {
				c := connect(t, addr)
				c.send("POST " + path + " HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nExpect: 100-continue\r\n" +
					framing + "\r\n\r\n")
				if resp, body := c.receive("POST"); resp.StatusCode != http.StatusContinue { // no order has the slot yet
					t.Fatalf("%d %s", resp.StatusCode, body)
				}
				c.send(part)
				slow = append(slow, c)
			}
		}
	}
	c := connect(t, addr)
	for range 5 {
		c.send(order)
		if resp, body := c.receive("POST"); resp.StatusCode != 200 {
			t.Errorf("an order beside slow bodies: %d %s", resp.StatusCode, body)
		}
	}
	for _, c := range slow {
		resp, body := c.receive("POST")
		if resp.StatusCode != 408 || reasonOrStatus(resp) != "too_slow" || !resp.Close || c.rest() != "" {
			t.Errorf("a slow body: %d %s", resp.StatusCode, body)
		}
	}
	if n := rejections(p); n["too_slow"] != 8 || len(n) != 1 || len(to.all()) != 5 {
		t.Errorf("counted %v, the upstream saw %q", n, to.all())
	}
	if slots.acquired.Load() != 5 || slots.released.Load() != 5 {
		t.Errorf("%d slots acquired, %d released, want 5", slots.acquired.Load(), slots.released.Load())
	}
}

// While a limit is full, no body is asked for that would be rejected once it is whole.
func TestSlowBody_IsNotAskedForWhileALimitIsFull(t *testing.T) {
	for reason, set := range map[string]func(*Options){
		"window":      func(o *Options) { o.Windows = fullWindow{} },
		"concurrency": func(o *Options) { o.Concurrency = fullQueue{} },
	} {
		o := options(&recorder{})
		set(&o)
		addr, p := gateway(t, o)
		resp, body := talk(t, addr,
			"POST /search/ HTTP/1.1\r\nHost: shop\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n")
		if resp.StatusCode != 429 || reasonOrStatus(resp) != reason || !resp.Close {
			t.Errorf("%s: %d %s", reason, resp.StatusCode, body)
		}
		if n := rejections(p); n[reason] != 1 || len(n) != 1 {
			t.Errorf("%s: counted %v, want it once", reason, n)
		}
	}
}

// A limit that is only observed counts a request once, although it is asked before the body and behind it.
func TestObserveOnly_FullLimitCountsARequestWithABodyOnce(t *testing.T) {
	for reason, fill := range map[reject.Reason]func(*Options){
		reject.Window:      func(o *Options) { o.Windows = fullWindow{} },
		reject.Concurrency: func(o *Options) { o.Concurrency = fullQueue{slotFunc(always(reject.Concurrency))} },
	} {
		for name, observe := range map[string]func(*Options){
			"observe_only": func(o *Options) { o.ObserveOnly = []reject.Reason{reason} },
			"observe mode": func(o *Options) { o.Observe = true },
		} {
			to := &recorder{}
			o := options(to)
			fill(&o)
			observe(&o)
			addr, p := gateway(t, o)
			resp, _ := talk(t, addr,
				"POST /search/ HTTP/1.1\r\nHost: shop\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
			n := testkit.Series(t, p.Counters())["sluice_observed_rejections_total "+reason.String()+" search"]
			if saw := to.all(); resp.StatusCode != 200 || n != 1 || len(saw) != 1 || !strings.HasSuffix(saw[0], "hi") {
				t.Errorf("%v, %s: %d, counted %v times; the upstream saw %q", reason, name, resp.StatusCode, n, saw)
			}
		}
	}
}
