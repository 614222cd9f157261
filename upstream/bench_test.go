package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
)

var headOfSmallResponse = []byte(smallResponse[:strings.Index(smallResponse, "\r\n\r\n")+4])

const smallResponse = "HTTP/1.1 200 OK\r\nDate: Tue, 11 Nov 2025 00:00:00 GMT\r\nContent-Type: application/json\r\n" +
	"Content-Length: 23\r\nSet-Cookie: a=b\r\n\r\n{\"code\":0,\"msg\":\"sold\"}"

// minimalServer answers each small POST with smallResponse, as cheaply as a server in Go can.
func minimalServer(tb testing.TB) string {
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
	answer := []byte(smallResponse)
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
			name, value, _ := bytes.Cut(line[:len(line)-2], []byte(": "))
			if bytes.EqualFold(name, []byte("content-length")) {
				length = int(octets.Length(value))
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

// smallOrder and smallPage are requests as a browser's would be forwarded.
func smallOrder() *Request {
	r := newRequest("POST", "/api/seckill/1001/order",
		"Content-Type: application/json", "Cookie: uid=7", "X-Forwarded-For: 203.0.113.9")
	r.Order = true
	return r.withBody([]byte(`{"sku":1001}`))
}

func smallPage() *Request {
	r := newRequest("GET", "/api/page?x=1", "Accept: */*", "Cookie: uid=7", "X-Forwarded-For: 203.0.113.9")
	r.Whole = false
	return r
}

func BenchmarkExchange(b *testing.B) {
	for name, req := range map[string]*Request{"GET": smallPage(), "POST": smallOrder()} {
		b.Run(name, func(b *testing.B) {
			p := newPool(b, options("http://"+minimalServer(b)))
			resp := new(fasthttp.Response)
			b.ReportAllocs()
			for b.Loop() {
				if o := p.Send(req, resp); o != Answered {
					b.Fatal(o)
				}
			}
		})
	}
}

// inMemory is a connection that answers each write from memory: the transport's own work is left, and the probe.
type inMemory struct {
	wrapped
	said, left []byte
}

func (m *inMemory) Write(p []byte) (int, error) { m.left = m.said; return len(p), nil }
func (m *inMemory) Read(p []byte) (int, error) {
	n := copy(p, m.left)
	m.left = m.left[n:]
	return n, nil
}

// BenchmarkSend is an exchange without a network.
func BenchmarkSend(b *testing.B) {
	for name, c := range map[string]struct {
		req  *Request
		said string
	}{
		"GET": {smallPage(), smallResponse}, "POST": {smallOrder(), smallResponse},
		"200KiB": {smallPage(), ok(strings.Repeat("x", 200<<10))}, "2MiB": {smallPage(), ok(strings.Repeat("x", 2<<20))},
	} {
		b.Run(name, func(b *testing.B) {
			o := options("http://" + minimalServer(b))
			o.Wrap = func(nc net.Conn) net.Conn { return &inMemory{wrapped: wrapped{nc}, said: []byte(c.said)} }
			p := newPool(b, o)
			resp := new(fasthttp.Response)
			b.ReportAllocs()
			for b.Loop() {
				if o := p.Send(c.req, resp); o != Answered || resp.BodyWriteTo(io.Discard) != nil {
					b.Fatal(o)
				}
			}
		})
	}
}

func BenchmarkExchangeParallel(b *testing.B) {
	p := newPool(b, options("http://"+minimalServer(b)))
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		req, resp := smallOrder(), new(fasthttp.Response)
		for pb.Next() {
			if o := p.Send(req, resp); o != Answered {
				b.Error(o)
				return
			}
		}
	})
}

// BenchmarkHostClientDo is the same exchange by fasthttp's client, which neither probes nor checks.
func BenchmarkHostClientDo(b *testing.B) {
	c := &fasthttp.HostClient{Addr: minimalServer(b)}
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
	c := &fasthttp.HostClient{Addr: minimalServer(b)}
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

// BenchmarkHead is the check and fasthttp's parser.
func BenchmarkHead(b *testing.B) {
	wire := &script{}
	e := exchange{conn: newConn(&socket{}, wire)}
	h := new(fasthttp.ResponseHeader)
	b.ReportAllocs()
	for b.Loop() {
		wire.said, wire.step = headOfSmallResponse, 1<<16
		if final, err := e.readHead(); !final || err != nil || e.parseHeader(h) != nil {
			b.Fatal("rejected")
		}
	}
}

func BenchmarkProbe(b *testing.B) {
	p := newPool(b, options("http://"+minimalServer(b)))
	t := p.targets.Load().all[0]
	c, err := t.ready(openPlace(t), newOrder("GET", "/"), true, 0)
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
	t := newPool(b, options("http://"+minimalServer(b))).targets.Load().all[0]
	c, err := t.ready(openPlace(t), newOrder("GET", "/"), true, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer t.drop(c)
	for b.Loop() {
		c.SetDeadline(time.Now().Add(time.Minute))
	}
}
