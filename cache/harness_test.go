package cache

import (
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
	"sluice/proxy/server"
	"sluice/upstream"
)

// testCache is a cache before a shop, on a clock of its own. It goes the way of the proxy.
type testCache struct {
	*Cache
	mu    sync.Mutex
	time  time.Time
	shop  func(request string, resp *fasthttp.Response) upstream.Outcome
	asked []string // the requests that came to the shop
}

const freshFor = time.Second // of the route

func open(t *testing.T) *testCache {
	d := &testCache{time: time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)}
	c, err := New(Options{Size: 1 << 20, StaleWhileRevalidate: 10 * time.Second, StaleIfError: time.Minute, Now: d.now})
	if err != nil {
		t.Fatal(err)
	}
	d.Cache = c
	return d
}

func (d *testCache) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.time
}

func (d *testCache) pass(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.time = d.time.Add(t)
}

// says has the shop give one answer: a status line's code and header lines, an empty line, the body.
func (d *testCache) says(status int, header, body string) {
	d.shop = func(_ string, resp *fasthttp.Response) upstream.Outcome {
		fill(resp, status, header, body)
		return upstream.Answered
	}
}

func fill(resp *fasthttp.Response, status int, header, body string) {
	resp.Reset()
	headerOf(status, func(yield func(name, value []byte) bool) {
		for line := range strings.Lines(header) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if !yield([]byte(name), []byte(value)) {
				return
			}
		}
	}).CopyTo(&resp.Header)
	resp.SetBodyString(body)
}

// heard is a request's head as it comes off a connection.
func heard(lines ...string) *server.Request {
	text := "GET / HTTP/1.1\r\nHost: shop\r\n" + strings.Join(append(lines, "", ""), "\r\n")
	x, err := server.Read(text, netip.Addr{}, server.Limits{Header: 64 << 10, Target: 1 << 10})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return x.Request()
}

// get asks for path, with header lines; failed is that there was no answer.
func (d *testCache) get(path string, lines ...string) (resp *fasthttp.Response, failed bool) {
	req := heard(lines...)
	page := &proxy.Page{Key: []byte(path), Fresh: freshFor, Wait: time.Second, Request: req, Client: new(server.Conn)}
	resp = new(fasthttp.Response)
	switch d.Lookup(page, resp) {
	case proxy.CacheHit:
	case proxy.CacheError:
		return nil, true
	case proxy.CacheBypass:
		return resp, d.ask(path, resp) != upstream.Answered
	case proxy.CacheMiss:
		outcome := d.ask(path+"\r\n"+string(page.Conditions), resp)
		return resp, !d.Store(page, outcome, resp) && outcome != upstream.Answered
	}
	return resp, false
}

func (d *testCache) ask(request string, resp *fasthttp.Response) upstream.Outcome {
	d.mu.Lock()
	d.asked = append(d.asked, request)
	shop := d.shop
	d.mu.Unlock()
	return shop(request, resp)
}

// want asks and compares the body, and how often the shop has been asked until now.
func (d *testCache) want(t *testing.T, body string, asked int, path string, lines ...string) *fasthttp.Response {
	t.Helper()
	resp, failed := d.get(path, lines...)
	if failed {
		t.Fatalf("%s: no answer", path)
	}
	if string(resp.Body()) != body || len(d.asked) != asked {
		t.Fatalf("%s %q: %q after %d requests to the shop, want %q after %d", path, lines, resp.Body(), len(d.asked), body,
			asked)
	}
	return resp
}
