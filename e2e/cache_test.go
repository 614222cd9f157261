package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// shelf is a shop that counts who asks for its pages, and that can be stopped.
type shelf struct {
	server *httptest.Server
	counts sync.Map // path → *atomic.Int64
}

func openShelf(t *testing.T) *shelf {
	s := &shelf{}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := s.counts.LoadOrStore(r.Method+" "+r.URL.Path, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		switch {
		case strings.HasPrefix(r.URL.Path, "/person"):
			http.SetCookie(w, &http.Cookie{Name: "sid", Value: r.Header.Get("Cookie")})
		case r.URL.Path == "/chunked":
			for range 20 {
				_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
				w.(http.Flusher).Flush()
			}
		case r.URL.Path == "/large":
			w.Header().Set("Content-Length", "3000000")
			_, _ = io.WriteString(w, strings.Repeat("x", 3_000_000))
		}
		_, _ = io.WriteString(w, "for "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.server.Close)
	return s
}

func (s *shelf) asked(what string) int64 {
	n, ok := s.counts.Load(what)
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

const cachedRoutes = `
[[route]]
name = "search"
match = "/search"
gate = "limit"
cache = "30s"

[[route]]
name = "pages"
match = "/"
gate = "pass"
cache = "30s"
`

func TestCache_CrowdIsOneRequestASecondAtTheShop(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	g := gate(t, "upstream.targets = "+quoted(s.server.URL), unlimited, "limits.connection.max_connections_per_ip = 1000",
		strings.ReplaceAll(cachedRoutes, `"30s"`, `"1s"`))
	begin := time.Now()
	goesOn := func() bool {
		return time.Since(begin) < 2500*time.Millisecond || s.asked("GET /p") < 2 && time.Since(begin) < long
	}
	var asked atomic.Int64
	var crowd sync.WaitGroup
	for range 64 {
		crowd.Go(func() {
			for goesOn() {
				if a := g.ask("GET", "/p?id=7"); a.status != 200 || a.body != "for " {
					t.Errorf("%d %q", a.status, a.body)
					return
				}
				asked.Add(1)
			}
		})
	}
	crowd.Wait()
	most := int64(time.Since(begin)/time.Second) + 1
	if got := s.asked("GET /p"); got > most || got < 2 {
		t.Errorf("%d of %d requests came to the shop, want 2 to %d", got, asked.Load(), most)
	}
	t.Logf("%d requests, of which %d came to the shop", asked.Load(), s.asked("GET /p"))
	s.server.Close()
	a := g.ask("GET", "/p?id=7")
	if a.status != 200 || a.body != "for " {
		t.Errorf("with the shop stopped: %d %q", a.status, a.body)
	}
	time.Sleep(1100 * time.Millisecond) // nothing but time makes it stale
	a = g.ask("GET", "/p?id=7")
	if a.status != 200 || a.body != "for " || !strings.Contains(a.header.Get("Cache-Status"), "detail=error") {
		t.Errorf("with the shop stopped, and stale: %d %q %v", a.status, a.body, a.header)
	}
	if n := g.metric("sluice_cache_requests_total", "result", "hit"); n < 1 {
		t.Errorf("sluice_cache_requests_total{result=\"hit\"} %v", n)
	}
}

func TestCache_PrivatePagesAreNotShared(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	g := gate(t, "upstream.targets = "+quoted(s.server.URL), unlimited, cachedRoutes)
	for range 2 {
		if body := g.ask("GET", "/me", "Authorization: Basic ann").body; body != "for Basic ann" {
			t.Errorf("Ann gets %q", body)
		}
		if got := g.ask("GET", "/person", "Cookie: sid=ann").header.Get("Set-Cookie"); !strings.Contains(got, "ann") {
			t.Errorf("Ann's cookie is %q", got)
		}
		if got := g.ask("GET", "/person", "Cookie: sid=bob").header.Get("Set-Cookie"); !strings.Contains(got, "bob") {
			t.Errorf("Bob's cookie is %q", got)
		}
	}
	if body := g.ask("GET", "/me").body; body != "for " {
		t.Errorf("who says nothing gets %q", body)
	}
	if body := g.ask("GET", "/me", "Authorization: Basic bob").body; body != "for Basic bob" {
		t.Errorf("Bob gets %q", body)
	}
}

func TestCache_PagesOfAllFormsAreAnsweredWhole(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	g := gate(t, "upstream.targets = "+quoted(s.server.URL), unlimited, cachedRoutes)
	for _, c := range []struct {
		method, path string
		lines        []string
		length       int
		asked        int64 // the shop, after three times
	}{
		{"GET", "/chunked", nil, 200_004, 1},
		{"GET", "/large", nil, 3_000_000, 3},
		{"GET", "/search?q=1", nil, 4, 1},
		{"GET", "/part", []string{"Range: bytes=0-1"}, 4, 3},
		{"GET", "/other", []string{"X-Original-URL: /admin"}, 4, 3},
		{"POST", "/posted", nil, 4, 3},
		{"HEAD", "/chunked", nil, 0, 0},
	} {
		for range 3 {
			if a := g.ask(c.method, c.path, c.lines...); a.status != 200 || len(a.body) != c.length {
				t.Errorf("%s %s: %d and %d bytes, want %d", c.method, c.path, a.status, len(a.body), c.length)
			}
		}
		path, _, _ := strings.Cut(c.path, "?")
		if got := s.asked(c.method + " " + path); got != c.asked {
			t.Errorf("%s %s: the shop was asked %d times, want %d", c.method, c.path, got, c.asked)
		}
	}
	g.ask("GET", "/mark")
	g.ask("GET", "/mark?")
	if got := s.asked("GET /mark"); got != 2 {
		t.Errorf("/mark and /mark? are two pages, and the shop was asked %d times", got)
	}
	first := g.ask("GET", "/search?q=1")
	second := g.ask("GET", "/search?q=1")
	if a, b := first.header.Get("X-Request-Id"), second.header.Get("X-Request-Id"); a == "" || a == b {
		t.Errorf("request ids %q and %q", a, b)
	}
	g.ask("POST", "/search?q=1") // RFC 9111, section 4.4
	g.ask("GET", "/search?q=1")
	if got := s.asked("GET /search"); got != 2 {
		t.Errorf("after it was changed the page was fetched %d times in all, want 2", got)
	}
}
