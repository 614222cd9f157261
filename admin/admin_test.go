package admin

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// shelf is a store of one SKU.
type shelf struct{ left int64 }

func (s *shelf) Read(_ context.Context, sku string) (Stock, error) {
	if sku != "1001" {
		return Stock{}, fmt.Errorf("%q: %w", sku, ErrNoSKU)
	}
	return Stock{SKU: sku, Left: s.left, OnSale: true}, nil
}

func (s *shelf) Set(ctx context.Context, sku string, left int64) (Stock, error) {
	if left < 0 {
		return Stock{}, fmt.Errorf("%w: a stock is 0 or more", ErrInvalid)
	}
	s.left = left
	return s.Read(ctx, sku)
}

func (s *shelf) Add(ctx context.Context, sku string, delta int64) (Stock, error) {
	s.left += delta
	return s.Read(ctx, sku)
}

func (s *shelf) List(context.Context, int) ([]Stock, error) {
	return []Stock{{SKU: "1001", Left: s.left, OnSale: true}}, nil
}

// ask sends one request as it would arrive from a caller.
func ask(h http.Handler, method, target, body string, set func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:5555", "127.0.0.1:8090"
	if set != nil {
		set(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAdmin_StockIsReadAndSet(t *testing.T) {
	store := &shelf{left: 3}
	h := (&API{Store: store, Log: slog.New(slog.DiscardHandler)}).Handler()
	for _, tt := range []struct {
		method, path, body string
		status             int
		left               int64
	}{
		{"GET", "/api/v1/stock/1001", "", 200, 3},
		{"POST", "/api/v1/stock/1001", `{"set": 10}`, 200, 10},
		{"POST", "/api/v1/stock/1001", `{"add": -4}`, 200, 6},
		{"POST", "/api/v1/stock/1001", `{"set": -1}`, 400, 6},
		{"POST", "/api/v1/stock/1001", `{"set": 1, "add": 1}`, 400, 6},
		{"POST", "/api/v1/stock/1001", `{"sett": 1}`, 400, 6},
		{"POST", "/api/v1/stock/1001", `{}`, 400, 6},
		{"POST", "/api/v1/stock/1001", `{"set": ` + strings.Repeat(" ", 5000) + `1}`, 400, 6},
		{"GET", "/api/v1/stock/7", "", 404, 6},
		{"GET", "/api/v1/stock", "", 200, 6},
		{"DELETE", "/api/v1/stock/1001", "", 405, 6},
	} {
		w := ask(h, tt.method, tt.path, tt.body, nil)
		if w.Code != tt.status || store.left != tt.left {
			t.Errorf("%s %s %.40s: %d %s, left %d; want %d, left %d", tt.method, tt.path, tt.body, w.Code, w.Body, store.left,
				tt.status, tt.left)
		}
	}
}

func TestAdmin_WithoutATokenOnlyThisMachineByItsOwnNameIsAnswered(t *testing.T) {
	h := (&API{Store: &shelf{}, Log: slog.New(slog.DiscardHandler)}).Handler()
	tcp, unix := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8090}, &net.UnixAddr{Net: "unix", Name: "/run/admin.sock"}
	over := func(at net.Addr, from, host string) func(*http.Request) {
		return func(r *http.Request) {
			*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
			r.RemoteAddr, r.Host = from, host
		}
	}
	for name, tt := range map[string]struct {
		set  func(*http.Request)
		want int
	}{
		"this machine":           {nil, 200},
		"by name":                {func(r *http.Request) { r.Host = "localhost:8090" }, 200},
		"IPv6":                   {func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:5555", "[::1]:8090" }, 200},
		"elsewhere":              {over(tcp, "192.0.2.1:5555", "127.0.0.1:8090"), 403},
		"a page with a fake DNS": {func(r *http.Request) { r.Host = "evil.example" }, 403},
		"a name like ours":       {func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, 403},
		"a unix socket":          {over(unix, "@", "localhost"), 200},
		"one by another name":    {over(unix, "@", "evil.example"), 403},
		"a page of another site": {func(r *http.Request) {
			r.Method = "POST"
			r.Body = io.NopCloser(strings.NewReader(`{"set": 1}`))
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, 403},
		"a page of another origin": {func(r *http.Request) {
			r.Method = "POST"
			r.Body = io.NopCloser(strings.NewReader(`{"set": 1}`))
			r.Header.Set("Origin", "http://evil.example")
		}, 403},
		"an image of another site":        {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"another program of this machine": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		"a proxy on this machine":         {func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.1") }, 403},
		"another proxy":                   {func(r *http.Request) { r.Header.Set("Via", "1.1 edge") }, 403},
		"the dashboard":                   {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, 200},
		"an address that was typed":       {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 200},
	} {
		if w := ask(h, "GET", "/api/v1/stock/1001", "", tt.set); w.Code != tt.want {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, tt.want)
		}
	}
}

func TestAdmin_TokenIsAskedForFromEverybody(t *testing.T) {
	h := (&API{Store: &shelf{}, Token: "secret", Log: slog.New(slog.DiscardHandler)}).Handler()
	for authorization, want := range map[string]int{"": 401, "Bearer wrong": 401, "secret": 401, "Bearer secret": 200} {
		w := ask(h, "GET", "/api/v1/stock/1001", "", func(r *http.Request) { r.Header.Set("Authorization", authorization) })
		if w.Code != want || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%q: %d %s, want %d", authorization, w.Code, w.Body, want)
		}
	}
}

func TestReadyz_SaysReadyDegradedOrNotReady(t *testing.T) {
	health := Healthy
	h := Ops([]Check{
		{"shop", func() (string, Health) { return "1 of 1", Healthy }},
		{"redis", func() (string, Health) { return "away", health }},
	}, prometheus.NewRegistry())
	for _, c := range []struct {
		health        Health
		status        int
		short, detail string
	}{
		{Healthy, 200, "ready\n", "ok   shop: 1 of 1\nok   redis: away\nready\n"},
		{Degraded, 200, "degraded; redis: away\n", "ok   shop: 1 of 1\nWARN redis: away\ndegraded\n"},
		{Unready, 503, "not ready; redis: away\n", "ok   shop: 1 of 1\nFAIL redis: away\nnot ready\n"},
	} {
		health = c.health
		if w := ask(h, "GET", "/readyz", "", nil); w.Code != c.status || w.Body.String() != c.short {
			t.Errorf("%d: %d %q", health, w.Code, w.Body)
		}
		if w := ask(h, "GET", "/readyz?verbose", "", nil); w.Code != c.status || w.Body.String() != c.detail {
			t.Errorf("%d: %d %q", health, w.Code, w.Body)
		}
	}
	if w := ask(h, "GET", "/livez", "", nil); w.Code != 200 {
		t.Errorf("not ready is not dead: %d", w.Code)
	}
}

// Who asks one of the two ports for what is on the other hears where that is.
func TestPorts_NameWhatTheOtherOneHas(t *testing.T) {
	ops := Ops(nil, prometheus.NewRegistry())
	for _, path := range []string{"/", "/api/v1/status"} {
		w := ask(ops, "GET", path, "", nil)
		for _, want := range []string{"/metrics", "admin.listen"} {
			if w.Code != 404 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("ops, %s: %d %q", path, w.Code, w.Body)
			}
		}
	}
	if w := ask(ops, "POST", "/livez", "", nil); w.Code != 405 {
		t.Errorf("ops, POST: %d", w.Code)
	}
	api := (&API{Log: slog.New(slog.DiscardHandler)}).Handler()
	for _, path := range []string{"/metrics", "/readyz"} {
		w := ask(api, "GET", path, "", nil)
		if w.Code != 404 || !strings.Contains(w.Body.String(), "ops.listen has /livez, /readyz and /metrics") {
			t.Errorf("admin, %s: %d %q", path, w.Code, w.Body)
		}
	}
}
