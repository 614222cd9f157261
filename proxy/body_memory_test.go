package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

// orderOf is an order with a body of n bytes, of which only the first is sent. A client that is asked for its body by
// 100 Continue knows that the memory for it is reserved.
func orderOf(framing string) string {
	return "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\n" + framing +
		"\r\nExpect: 100-continue\r\n\r\n"
}

func withBodyMemory(n int64) Options {
	o := options(&recorder{})
	o.MaxBody, o.BodyMemory = 64<<10, n
	return o
}

// occupy opens orders of a size, until count of them hold memory; the next one is rejected.
func occupy(t *testing.T, addr string, size, count int) (all []*clientConn) {
	t.Helper()
	raw := orderOf(fmt.Sprintf("Content-Length: %d", size))
	for range count {
		c := connect(t, addr)
		c.send(raw)
		if resp, body := c.receive("POST"); resp.StatusCode != http.StatusContinue {
			t.Fatalf("a body of %d bytes: %d %s", size, resp.StatusCode, body)
		}
		c.send("x")
		all = append(all, c)
	}
	resp, body := talk(t, addr, raw)
	if resp.StatusCode != 503 || reasonOrStatus(resp) != "overloaded" || resp.Header.Get("Retry-After") != "3" ||
		!strings.Contains(body, "no memory is left for a body of this size") || !resp.Close {
		t.Fatalf("one body of %d bytes more: %d %v %s", size, resp.StatusCode, resp.Header, body)
	}
	return all
}

// Slow bodies of each size leave room for smaller ones; what has come along with its head is always read.
func TestBodyMemory_SlowBodiesLeaveRoomForSmallOrders(t *testing.T) {
	o := withBodyMemory(128 << 10)
	addr, p := gateway(t, o)
	p.slow.after = time.Hour // none of them makes room
	slow := occupy(t, addr, 64<<10, 1)
	part := orderWith(whole, "Content-Length: 2048\r\n\r\n"+strings.Repeat("x", 1025)) // holds 2 KiB
	for range 16 {
		c := connect(t, addr)
		c.send(part)
		slow = append(slow, c)
	}
	testkit.Eventually(t, "three quarters are in use", func() bool { return p.counters.BodyMemory().Load() == 96<<10 })
	if resp, body := talk(t, addr, part); resp.StatusCode != 503 || reasonOrStatus(resp) != "overloaded" {
		t.Fatalf("one body of 2 KiB more: %d %s", resp.StatusCode, body)
	}
	slow = append(slow, occupy(t, addr, 1<<10, 32)...)
	if used := p.counters.BodyMemory().Load(); used != 128<<10 {
		t.Errorf("%d bytes are in use, want all", used)
	}
	c := connect(t, addr)
	for range 10 {
		c.send(orderWith(whole, "Content-Length: 4000\r\n\r\n"+strings.Repeat("x", 4000)))
		if resp, body := c.receive("POST"); resp.StatusCode != 200 {
			t.Fatalf("an order beside slow bodies: %d %s", resp.StatusCode, body)
		}
	}
	for _, c := range slow {
		c.Close()
	}
	testkit.Eventually(t, "closed connections hold no memory", func() bool { return p.counters.BodyMemory().Load() == 0 })
	if n := rejections(p); n["overloaded"] != 3 {
		t.Errorf("counted %v", n)
	}
}

// A body in chunks, of which the length is not known, holds what has come, and at most as much again.
// The slowest body makes room for a small one, and hears that it is too slow; a large one finds none.
func TestBodyMemory_SlowestBodyMakesRoom(t *testing.T) {
	addr, p := gateway(t, withBodyMemory(128<<10))
	p.slow.after = 0
	large := orderWith(whole, "Content-Length: 65536\r\n\r\n")
	fast, slow := connect(t, addr), connect(t, addr)
	slow.send(orderWith(whole, "Content-Length: 16000\r\n\r\n"+strings.Repeat("x", 8<<10+1))) // holds 16,000 bytes
	testkit.Eventually(t, "the slow one is read", func() bool { return p.counters.BodyMemory().Load() == 16_000 })
	for range 5 {
		c := connect(t, addr)
		c.send(orderWith(whole, "Content-Length: 16000\r\n\r\n"+strings.Repeat("x", 15_999)))
	}
	testkit.Eventually(t, "three quarters are in use", func() bool { return p.counters.BodyMemory().Load() == 96_000 })
	if resp, body := talk(t, addr, large); resp.StatusCode != 503 {
		t.Errorf("a large one: %d %s", resp.StatusCode, body)
	}
	fast.send(orderWith(whole, "Content-Length: 16000\r\n\r\n"+strings.Repeat("x", 10_000)))
	if resp, body := slow.receive("POST"); resp.StatusCode != 408 || reasonOrStatus(resp) != "too_slow" {
		t.Errorf("the slow one: %d %s", resp.StatusCode, body)
	}
	fast.send(strings.Repeat("x", 6_000))
	if resp, body := fast.receive("POST"); resp.StatusCode != 200 {
		t.Errorf("the other one: %d %s", resp.StatusCode, body)
	}
}

func TestBodyMemory_ChunksHoldWhatHasCome(t *testing.T) {
	o := withBodyMemory(1 << 20)
	addr, p := gateway(t, o)
	c := connect(t, addr)
	c.send(orderOf("Transfer-Encoding: chunked"))
	if resp, _ := c.receive("POST"); resp.StatusCode != http.StatusContinue {
		t.Fatal(resp.StatusCode)
	}
	sent := int64(0)
	for _, n := range []int{1, 1 << 10, 8 << 10, 32 << 10} {
		c.send(fmt.Sprintf("%x\r\n%s\r\n", n, strings.Repeat("x", n)))
		sent += int64(n)
		testkit.Eventually(t, "what has come is counted", func() bool { return p.counters.BodyMemory().Load() >= sent })
		if used := p.counters.BodyMemory().Load(); used > 2*sent+2<<10 {
			t.Errorf("%d bytes are in use of a body of which %d have come", used, sent)
		}
	}
	c.send("0\r\n\r\n")
	if resp, body := c.receive("POST"); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if used := p.counters.BodyMemory().Load(); used != 0 {
		t.Errorf("%d bytes are in use after the answer", used)
	}
}

// A `pass` route needs no body in memory: without room it is streamed at once.
func TestBodyMemory_WithoutItPassRoutesStream(t *testing.T) {
	to := &recorder{}
	o := options(to)
	o.BodyMemory = 1 << 10
	addr, _ := gateway(t, o)
	content := strings.Repeat("0123456789", 2_000)
	resp, body := talk(t, addr, fmt.Sprintf("PUT /upload HTTP/1.1\r\nHost: shop\r\nContent-Length: %d\r\n\r\n%s",
		len(content), content))
	if resp.StatusCode != 200 || len(to.all()) != 1 || !strings.HasSuffix(to.all()[0], "\r\n\r\n"+content) {
		t.Errorf("%d %s, the upstream saw %.300q", resp.StatusCode, body, to.all())
	}
}

func TestBodyMemory_InObserveModeBodiesWithoutRoomAreStreamed(t *testing.T) {
	to := &recorder{}
	o := options(to)
	o.Observe, o.MaxBody, o.BodyMemory = true, 64<<10, 1<<10
	addr, p := gateway(t, o)
	content := strings.Repeat("0123456789", 2_000)
	resp, body := talk(t, addr, orderWith(whole, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(content), content)))
	n := testkit.Series(t, p.Counters())["sluice_observed_rejections_total overloaded order"]
	if resp.StatusCode != 200 || n != 1 || len(to.all()) != 1 || !strings.HasSuffix(to.all()[0], content) {
		t.Errorf("%d %s, counted %v times, the upstream saw %d requests", resp.StatusCode, body, n, len(to.all()))
	}
}

// While no slot can take it, a large body is not asked for, also where a variable looks into it.
func TestBodyMemory_LargeBodiesAreReadWhenASlotIsNear(t *testing.T) {
	o := withBodyMemory(1 << 20)
	o.Routes = []Route{{Name: "order", Match: "/", Gate: orderRoutes[0].Gate, SKU: "$json_sku"}}
	o.Concurrency = fullQueue{slotFunc(func() reject.Reason { return reject.Concurrency })}
	addr, p := gateway(t, o)
	resp, body := talk(t, addr, "POST / HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n"+
		"Content-Length: 20000\r\nExpect: 100-continue\r\n\r\n")
	if resp.StatusCode != 429 || reasonOrStatus(resp) != "concurrency" || p.counters.BodyMemory().Load() != 0 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// A reload keeps the count of what bodies hold, and gives the budget its new size.
func TestBodyMemory_OutlivesAReload(t *testing.T) {
	o := withBodyMemory(128 << 10)
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s, addr := serveWith(t, p, ServerOptions{ReadTimeout: time.Minute})
	occupy(t, addr, 64<<10, 1)
	o.BodyMemory, o.Before = 256<<10, p
	next, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Replace(next, ServerOptions{})
	occupy(t, addr, 64<<10, 1)
}
