package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/upstream"
)

// An order that is rejected never costs its body; one that is forwarded is asked for it first.
func TestServer_BodyIsAskedForOnlyAfterTheCheapChecks(t *testing.T) {
	o := options(&recorder{})
	o.Stock.(*stockMap).closed["sold-out"] = reject.SoldOut
	addr, _ := gateway(t, o)
	const head = "POST /api/seckill/%s/order HTTP/1.1\r\nHost: s\r\nCookie: uid=7\r\n" +
		"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
	for sku, want := range map[string]string{"sold-out": "HTTP/1.1 409", "1001": "HTTP/1.1 100"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, head, sku)
		in := bufio.NewReader(c)
		line, err := in.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("%s: %q, %v; want %s", sku, line, err, want)
		}
		if sku == "sold-out" {
			continue
		}
		_, _ = io.WriteString(c, "hi")
		_, _ = in.ReadString('\n') // the empty line
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("after the body: %v, %v", resp, err)
		}
	}
}

// ask sends one request on a connection that stays, and reads the answer.
func ask(t *testing.T, c net.Conn, in *bufio.Reader, raw string) (status int, body string) {
	t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

// firstRequests allows so many requests, and none after them.
type firstRequests struct{ left int }

func (f *firstRequests) Allow(time.Time) (time.Duration, bool) {
	f.left--
	return time.Second, f.left >= 0
}

// A reload exchanges the Proxy under connections that stay: the next request is handled by the new one, and a request
// that is under way by the old one. Whether the peer of a connection is trusted is decided anew.
func TestServer_ReplaceKeepsConnections(t *testing.T) {
	begun, answer := make(chan struct{}), make(chan struct{})
	named := func(name string) upstreamFunc {
		return func(o *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
			if strings.HasSuffix(string(o.HTTP.RequestURI()), "/slow") {
				close(begun)
				<-answer
			}
			resp.SetBodyString(name)
			return upstream.Answered
		}
	}
	before := options(named("before"))
	before.Trusted = loopback
	client := clientProbe(&before)
	old, err := New(before)
	if err != nil {
		t.Fatal(err)
	}
	s, addr := serveWith(t, old, ServerOptions{})
	var conns [2]net.Conn
	var ins [2]*bufio.Reader
	for i := range conns {
		if conns[i], err = net.Dial("tcp", addr); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
		ins[i] = bufio.NewReader(conns[i])
	}
	const get = "GET /page HTTP/1.1\r\nHost: s\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n"
	if status, body := ask(t, conns[0], ins[0], get); status != 200 || body != "before" || *client != "6.6.6.6" {
		t.Fatalf("before: %d %s of %s", status, body, *client)
	}
	if _, err := io.WriteString(conns[1], strings.Replace(get, "/page", "/slow", 1)); err != nil {
		t.Fatal(err)
	}
	<-begun
	after := options(named("after"))
	after.Before = old
	client = clientProbe(&after)
	after.Trusted = []netip.Prefix{}
	next, err := New(after)
	if err != nil {
		t.Fatal(err)
	}
	s.Replace(next, ServerOptions{})
	if status, body := ask(t, conns[0], ins[0], get); status != 200 || body != "after" || *client != "127.0.0.1" {
		t.Errorf("after: %d %s of %s", status, body, *client)
	}
	close(answer)
	if status, body := ask(t, conns[1], ins[1], get); status != 200 || body != "before" {
		t.Errorf("the request under way: %d %s", status, body)
	}
	if n := next.Counters().Totals().Forwarded; n < 3 {
		t.Errorf("%d requests are counted, want those before the reload too", n)
	}
}

// The request rate belongs to the connection: a reload does not renew it.
func TestServer_ReplaceKeepsTheRequestRateOfConnections(t *testing.T) {
	o := options(&recorder{})
	o.Routes = []Route{{Name: "x", Match: "/", Gate: route.Limit}}
	o.ConnRate = func() ConnRateLimiter { return &firstRequests{left: 2} }
	old, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s, addr := serveWith(t, old, ServerOptions{})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for i, want := range []int{200, 200, 429} {
		if i == 1 {
			o.Before = old
			next, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			s.Replace(next, ServerOptions{})
		}
		if status, body := ask(t, c, in, pageRequest); status != want {
			t.Errorf("request %d: %d %s, want %d", i, status, body, want)
		}
	}
}

// A reload may change the limits of heads too: a header that a new route looks at may not be removed by a hop.
func TestServer_ReplaceProtectsTheHeadersOfNewRoutes(t *testing.T) {
	o := options(&recorder{})
	old, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s, addr := serveWith(t, old, ServerOptions{})
	const raw = "GET /x HTTP/1.1\r\nHost: s\r\nX-User: 7\r\nConnection: X-User, close\r\n\r\n"
	if resp, body := talk(t, addr, raw); resp.StatusCode != 200 {
		t.Errorf("before: %d %s", resp.StatusCode, body)
	}
	o.Routes = []Route{{Name: "x", Match: "/", Gate: route.Limit, User: "$http_x_user"}}
	o.Before = old
	next, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Replace(next, ServerOptions{})
	if resp, body := talk(t, addr, raw); resp.StatusCode != 400 || resp.Header.Get("X-Sluice-Reason") != "malformed" {
		t.Errorf("after: %d %s", resp.StatusCode, body)
	}
}

// A gate reloads for months: no Proxy may keep those before it.
func TestServer_ReplacedProxyIsCollected(t *testing.T) {
	o := options(&recorder{})
	first, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s, addr := serveWith(t, first, ServerOptions{})
	former := weak.Make(first)
	for range 2 {
		o.Before, first = s.proxy.Load(), nil
		next, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Replace(next, ServerOptions{})
		if resp, body := talk(t, addr, pageRequest); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	o.Before = nil
	testkit.Eventually(t, "the first one is collected", func() bool {
		runtime.GC()
		return former.Value() == nil
	})
}
