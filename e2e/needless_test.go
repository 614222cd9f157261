package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// limitedRoutes are routes of gate "limit" whose SKU stands in each place of a request.
const limitedRoutes = `stock.source = "off"

[[route]]
name = "json"
match = "POST /json"
gate = "limit"
sku = "$json_item.sku"

[[route]]
name = "form"
match = "POST /form"
gate = "limit"
sku = "$form_sku"

[[route]]
name = "cookie"
match = "POST /cookie"
gate = "limit"
sku = "$arg_sku"
user = "$cookie_uid"

[[route]]
name = "everything-else"
match = "/"
gate = "pass"
`

// upload sends the head of a request, and pieces of a byte with a pause before each.
func upload(t *testing.T, g *running, path string, pieces int) answer {
	t.Helper()
	c := dial(t, g.front)
	if c == nil {
		t.Fatal("no connection")
	}
	_, _ = io.WriteString(c, head("POST "+path+" HTTP/1.1", host, "Content-Length: 13"))
	over := make(chan answer, 1)
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			over <- answer{reason: err.Error()}
			return
		}
		resp.Body.Close()
		over <- answer{status: resp.StatusCode, reason: resp.Header.Get("X-Sluice-Reason")}
	}()
	for range pieces {
		select {
		case a := <-over:
			return a
		case <-time.After(time.Second): // the pace of the client is what is tested
			_, _ = io.WriteString(c, "x")
		}
	}
	return <-over
}

// server.read_timeout is 10 s by default.
func TestNeedless_SteadyUploadOfAPageMayTakeLongerThanReadTimeout(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := gate(t, shop.setting(), unlimited, limitedRoutes)
	for name, c := range map[string]struct {
		path   string
		pieces int
		status int
		reason string
	}{
		"steady":           {"/upload", 13, 200, ""},
		"stalled":          {"/upload", 3, 408, "too_slow"},
		"on a gated route": {"/form", 13, 408, "too_slow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upload(t, g, c.path, c.pieces).must(t, c.status, c.reason)
		})
	}
}

func TestNeedless_RouteHasItsOwnTimeout(t *testing.T) {
	t.Parallel()
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/poll" {
			<-r.Context().Done() // the gate does not wait any longer
			return
		}
		time.Sleep(3 * time.Second) // longer than the timeouts of all other routes
		_, _ = io.WriteString(w, "news")
	})
	const settings = `upstream.response_header_timeout = "500ms"
upstream.timeout = "1s"
stock.source = "off"

[[route]]
name = "poll"
match = "GET /poll"
gate = "pass"
timeout = "1m"

[[route]]
name = "short"
match = "GET /short"
gate = "limit"
timeout = "100ms"

[[route]]
name = "everything-else"
match = "/"
gate = "pass"
`
	g := gate(t, "upstream.targets = "+quoted(shop.url), unlimited, settings)
	if a := g.ask("GET", "/poll"); !a.is(200, "") || a.body != "news" {
		t.Errorf("the poll is answered %d %s %q", a.status, a.reason, a.body)
	}
	g.ask("GET", "/other").must(t, 504, "upstream_timeout")
	g.ask("GET", "/short").must(t, 504, "upstream_timeout")
	wants(t, ok(t, "explain", "--config", g.file, "GET /poll"),
		"timeout   1m0s to the header of the response (route.timeout)")
	wants(t, ok(t, "explain", "--config", g.file, "GET /other"),
		"timeout   500ms to the header of the response (upstream.response_header_timeout)")
	wants(t, ok(t, "check", "-v", g.file), `the shop has 1m0s to answer on route "poll", and 500ms elsewhere`)
	g.replace(t, `timeout = "1m"`, `timeout = "200ms"`)
	soon(t, "the reload shortens the poll", func() bool { return g.ask("GET", "/poll").is(504, "upstream_timeout") })
}

func TestNeedless_PlainHTTPOnThePortOfTLSIsToldSo(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	cert, key := certified(t)
	g := gate(t, shop.setting(), unlimited, fmt.Sprintf("server.tls.cert_file = %q\nserver.tls.key_file = %q", cert, key))
	for _, text := range []string{
		head(toGet, host), head("POST /a HTTP/1.1", host, "Content-Length: 100000") + strings.Repeat("x", 100_000),
		head("get / HTTP/1.0"), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		a := g.raw(t, text)
		a.must(t, 400, "malformed")
		if !a.closes || !strings.Contains(a.body, "https://") {
			t.Errorf("%.40q: connection kept %v, body %s", text, !a.closes, a.body)
		}
	}
	g.wantMetric(4, "sluice_malformed_requests_total", `kind="plain_http"`)
	for _, text := range []string{"\x00\x01\x02\x03\x04\x05", "\x80\x2e\x01\x03\x01\x00", "\r\n\r\n\r\n"} {
		c := dial(t, g.front)
		_, _ = io.WriteString(c, text)
		_ = c.(*net.TCPConn).CloseWrite()
		if b, _ := io.ReadAll(c); strings.Contains(string(b), "HTTP/") {
			t.Errorf("%q is answered %q", text, b)
		}
	}
	secure := tls.Client(dial(t, g.front), &tls.Config{InsecureSkipVerify: true})
	_, _ = io.WriteString(secure, head(toGet, host))
	if resp, err := http.ReadResponse(bufio.NewReader(secure), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("over TLS: %v, %v", resp, err)
	}
}
