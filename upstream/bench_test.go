package upstream

import (
	"bufio"
	"bytes"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

const smallAnswer = "HTTP/1.1 200 OK\r\nDate: Tue, 11 Nov 2025 00:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: 23\r\nSet-Cookie: a=b\r\n\r\n{\"code\":0,\"msg\":\"sold\"}"

// minimalShop answers each small POST with smallAnswer, as cheaply as a server in Go can.
func minimalShop(tb testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			all.Go(func() { serveMinimal(c) })
		}
	})
	tb.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

func serveMinimal(c net.Conn) {
	r := bufio.NewReader(c)
	answer := []byte(smallAnswer)
	for {
		length := 0
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) == 2 {
				break
			}
			if name, value, ok := bytes.Cut(line[:len(line)-2], []byte(": ")); ok && bytes.EqualFold(name, []byte("content-length")) {
				length = int(parseLength(value))
			}
		}
		if _, err := r.Discard(length); err != nil {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

func options(targets ...string) Options {
	return Options{
		Targets: targets, Policy: "least_conn", MaxConns: 64, ConnectTimeout: 5 * time.Second,
		ResponseTimeout: 20 * time.Second, Timeout: 30 * time.Second, IdleConnTimeout: time.Minute, Retry: "connect",
	}
}

func newPool(tb testing.TB, o Options) *Pool {
	tb.Helper()
	p, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

var order = proxy.Outgoing{
	Line:   []byte("POST /api/seckill/1001/order HTTP/1.1\r\n"),
	Host:   []byte("shop.example"),
	Fields: []byte("Content-Type: application/json\r\nContent-Length: 12\r\nCookie: uid=7\r\nX-Forwarded-For: 203.0.113.9\r\n"),
	Body:   []byte(`{"sku":1001}`),
	Order:  true,
}

func BenchmarkSendSmallOrder(b *testing.B) {
	p := newPool(b, options("http://"+minimalShop(b)))
	resp := new(fasthttp.Response)
	b.ReportAllocs()
	for b.Loop() {
		if o := p.Send(&order, resp); o != proxy.Answered {
			b.Fatal(o)
		}
	}
}

func BenchmarkSendSmallOrderParallel(b *testing.B) {
	p := newPool(b, options("http://"+minimalShop(b)))
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		resp := new(fasthttp.Response)
		for pb.Next() {
			if o := p.Send(&order, resp); o != proxy.Answered {
				b.Error(o)
				return
			}
		}
	})
}

// BenchmarkHostClientDo is the same exchange by fasthttp's client, which neither probes nor checks.
func BenchmarkHostClientDo(b *testing.B) {
	c := &fasthttp.HostClient{Addr: minimalShop(b)}
	defer c.CloseIdleConnections()
	req, resp := hostClientOrder(), new(fasthttp.Response)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Do(req, resp); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHostClientDoTimeout also has a bound in time, as ours always has.
func BenchmarkHostClientDoTimeout(b *testing.B) {
	c := &fasthttp.HostClient{Addr: minimalShop(b)}
	defer c.CloseIdleConnections()
	req, resp := hostClientOrder(), new(fasthttp.Response)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.DoTimeout(req, resp, 20*time.Second); err != nil {
			b.Fatal(err)
		}
	}
}

func hostClientOrder() *fasthttp.Request {
	req := new(fasthttp.Request)
	req.Header.SetMethod("POST")
	req.SetRequestURI("http://shop.example/api/seckill/1001/order")
	req.Header.SetContentType("application/json")
	req.Header.Set("Cookie", "uid=7")
	req.Header.Set("X-Forwarded-For", "203.0.113.9")
	req.SetBodyString(`{"sku":1001}`)
	return req
}

func BenchmarkParseHead(b *testing.B) {
	raw := []byte(smallAnswer[:bytes.Index([]byte(smallAnswer), []byte("\r\n\r\n"))+4])
	var kept []byte
	b.ReportAllocs()
	for b.Loop() {
		var h head
		if !h.parse(raw, kept) {
			b.Fatal("refused")
		}
		kept = h.kept
	}
}

func BenchmarkProbe(b *testing.B) {
	p := newPool(b, options("http://"+minimalShop(b)))
	t := p.targets.Load().all[0]
	c, err := t.take(true, true, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer t.drop(c)
	b.ReportAllocs()
	for b.Loop() {
		if !c.fresh() {
			b.Fatal("stale")
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, policy := range policies {
		b.Run(policy, func(b *testing.B) {
			o := options(manyTargets(8)...)
			o.Policy = policy
			ts := newPool(b, o).targets.Load()
			b.ReportAllocs()
			for i := uint64(0); b.Loop(); i++ {
				ts.choose(0, i, 0)
			}
		})
	}
}

// BenchmarkDeadline is what one bound in time costs.
func BenchmarkDeadline(b *testing.B) {
	t := newPool(b, options("http://"+minimalShop(b))).targets.Load().all[0]
	c, err := t.take(true, true, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer t.drop(c)
	for b.Loop() {
		c.SetDeadline(time.Now().Add(time.Minute))
	}
}
