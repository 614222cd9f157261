package proxy

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
	"sluice/proxy/route"
	"sluice/upstream"
)

const upgrade = "GET /chat HTTP/1.1\r\nHost: shop\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo/1\r\n\r\n"

// upgradeWith is the upgrade with one part of it replaced.
func upgradeWith(part, by string) string { return strings.Replace(upgrade, part, by, 1) }

// asksToUpgrade reports a request that still has something of an upgrade.
func asksToUpgrade(raw string) bool {
	raw = strings.ToLower(raw)
	return strings.Contains(raw, "upgrade") || strings.Contains(raw, "http2-settings")
}

// switching is an upstream that leaves HTTP: far is the other end of each tunnel.
type switching struct {
	recorder
	far chan net.Conn
}

func (s *switching) Upgrade(o *upstream.Request, resp *fasthttp.Response) (net.Conn, upstream.Outcome) {
	s.Send(o, resp)
	resp.Reset()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, upstream.NotSent
	}
	defer ln.Close()
	near, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return nil, upstream.NotSent
	}
	far, err := ln.Accept()
	if err != nil {
		return nil, upstream.NotSent
	}
	s.far <- far
	resp.SetStatusCode(101)
	resp.Header.Set("Connection", "Upgrade")
	resp.Header.Set("Upgrade", "echo/1")
	return near, upstream.Answered
}

// A tunnel lasts until both sides have ended, whichever ends first: what the other side still sends arrives.
func TestUpgrade_TunnelEndsWhenBothSidesHaveEnded(t *testing.T) {
	for _, clientFirst := range []bool{true, false} {
		to := &switching{far: make(chan net.Conn, 1)}
		p, err := New(options(to))
		if err != nil {
			t.Fatal(err)
		}
		s, addr := serveWith(t, p, ServerOptions{})
		c := connect(t, addr)
		c.send(upgrade + "early")
		far := connOf(t, <-to.far)
		resp, _ := c.receive("GET")
		if resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "echo/1" || resp.Header.Get("Connection") != "Upgrade" {
			t.Fatalf("response %v", resp)
		}
		saw := to.all()
		if len(saw) != 1 || !strings.Contains(saw[0], "\r\nConnection: Upgrade\r\nUpgrade: echo/1\r\n") {
			t.Errorf("the upstream saw %q", saw)
		}
		first, last := c, far
		sends := "early"
		if !clientFirst {
			first, last, sends = far, c, ""
			if _, err := io.ReadFull(far.in, make([]byte, len("early"))); err != nil {
				t.Fatal(err)
			}
		}
		first.send("from the first")
		closeWrite(t, first)
		if got := last.rest(); got != sends+"from the first" {
			t.Errorf("client ends first: %v: the other side received %q", clientFirst, got)
		}
		last.send("from the last")
		closeWrite(t, last)
		if got := first.rest(); got != "from the last" {
			t.Errorf("client ends first: %v: it received %q", clientFirst, got)
		}
		testkit.Eventually(t, "the connection is closed", func() bool { return s.Stats().Connections == 0 })
		if totals := p.Counters().Totals(); totals.Forwarded != 1 {
			t.Errorf("%d requests are counted as forwarded, want 1", totals.Forwarded)
		}
	}
}

// On a route with a limit a request is one response and no tunnel. In observe mode the upstream receives what it would
// without the gateway.
func TestUpgrade_OnALimitedRouteIsRejected(t *testing.T) {
	for _, gate := range []route.Gate{route.Limit, route.Check, route.Reserve} {
		for _, observes := range []bool{false, true} {
			to := &switching{far: make(chan net.Conn, 1)}
			o, ledger := reserving(to)
			o.Routes[0].Match, o.Routes[0].Gate, o.Observe = "GET /{sku}", gate, observes
			addr, p := gateway(t, o)
			resp, body := talk(t, addr, upgradeWith("/chat", "/1001"))
			if observes {
				saw := to.all()
				if resp.StatusCode != 101 || len(saw) != 1 || !asksToUpgrade(saw[0]) {
					t.Errorf("%v, in observe mode: %d %s; the upstream saw %q", gate, resp.StatusCode, body, saw)
				}
				continue
			}
			if resp.StatusCode != 400 || reasonOrStatus(resp) != "bad_request" || len(to.all()) != 0 {
				t.Errorf("%v: %d %s; the upstream saw %q", gate, resp.StatusCode, body, to.all())
			}
			if n := testkit.Series(t, p.Counters())["sluice_rejection_details_total upgrade"]; n != 1 {
				t.Errorf("%v: counted %v times with its cause, want once", gate, n)
			}
			if len(ledger.asked()) != 0 {
				t.Errorf("%v: units were reserved", gate)
			}
		}
	}
}

// h2c is left unanswered on all routes, as is any upgrade on a connection that ends: what would follow is not HTTP/1.1,
// or has no connection.
func TestUpgrade_ThatCannotBeIsLeftUnanswered(t *testing.T) {
	const h2c = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
	for _, raw := range []string{
		orderWith("Cookie: uid=7\r\n", "Cookie: uid=7\r\n"+h2c),
		"GET /search/ HTTP/1.1\r\nHost: shop\r\n" + h2c + "\r\n",
		"GET /page HTTP/1.1\r\nHost: shop\r\n" + h2c + "\r\n",
		upgradeWith("Connection: keep-alive, Upgrade", "Connection: Upgrade\r\nConnection: close"),
		upgradeWith("Connection: keep-alive, Upgrade", "Connection: close, Upgrade"),
		upgradeWith("HTTP/1.1", "HTTP/1.0"),
	} {
		to := &switching{far: make(chan net.Conn, 1)}
		addr, _ := gateway(t, options(to))
		resp, body := talk(t, addr, raw)
		saw := to.all()
		if resp.StatusCode != 200 || body != "from the upstream" || len(saw) != 1 || asksToUpgrade(saw[0]) {
			t.Errorf("%q: %d %q, the upstream saw %q", raw, resp.StatusCode, body, saw)
		}
	}
}

// An upstream need not accept an upgrade: its response is one like any other, and the connection goes on.
func TestUpgrade_DeclinedIsAResponse(t *testing.T) {
	to := &recorder{}
	addr, _ := gateway(t, options(to))
	c := connect(t, addr)
	for _, raw := range []string{upgrade, order, upgrade} {
		c.send(raw)
		if resp, body := c.receive("GET"); resp.StatusCode != 200 || body != "from the upstream" || resp.Close {
			t.Errorf("%q: %d %q", raw, resp.StatusCode, body)
		}
	}
	if n := len(to.all()); n != 3 {
		t.Errorf("the upstream saw %d requests, want 3", n)
	}
}

func closeWrite(t *testing.T, c *clientConn) {
	t.Helper()
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
}
