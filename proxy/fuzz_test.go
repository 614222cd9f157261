package proxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
	"sluice/limiter"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/server"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// The client is the rightmost untrusted address: a slow reading says the same.
func FuzzClientAddress(f *testing.F) {
	for _, s := range []string{"1.1.1.1, 6.6.6.6:1234", "10.0.0.1,10.0.0.2", "x, 10.0.0.1", "[2001:db8::1]:80",
		"::ffff:6.6.6.6", "fe80::1%eth0", ", ,"} {
		f.Add(s)
	}
	p := &Proxy{Options: Options{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	peer := netip.MustParseAddr("10.9.9.9")
	f.Fuzz(func(t *testing.T, list string) {
		want := peer
		items := strings.Split(list, ",")
		if list == "" {
			items = nil
		}
		for i := len(items) - 1; i >= 0; i-- {
			addr, err := slowAddr(strings.Trim(items[i], " \t"))
			if err != nil {
				break
			}
			want = addr
			if !p.Trusted[0].Contains(want) {
				break
			}
		}
		if got := p.Trusted.Rightmost([]byte(list), nil, peer); got != want {
			t.Errorf("%q: %v, want %v", list, got, want)
		}
	})
}

// slowAddr reads an address with or without a port and brackets.
func slowAddr(text string) (netip.Addr, error) {
	if len(text) > 64 || strings.Contains(text, "%") {
		return netip.Addr{}, io.EOF
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if addr, err := netip.ParseAddr(bare); err == nil && strings.HasPrefix(text, "[") == strings.HasSuffix(text, "]") {
		return addr.Unmap(), nil
	}
	ap, err := netip.ParseAddrPort(text)
	return ap.Addr().Unmap(), err
}

// handled is what became of one request.
type handled struct {
	method string // "" = it was not valid HTTP/1.1
	reason string // "" = it was not rejected
	sent   []sentRequest
	sku    string // that was judged
	serial string // of the reservation
}

// sentRequest is one request as the upstream would read it from the wire.
type sentRequest struct {
	text    string
	outcome upstream.Outcome
}

// observer is all around a proxy: it keeps what becomes of each request of a connection, and fails the test when
// something is given back more or less often than it was taken.
type observer struct {
	*Server
	log   []handled
	now   handled // of the request under way
	owed  map[string]int
	panic string
}

// Handle implements server.Handler.
func (o *observer) Handle(ctx *fasthttp.RequestCtx) {
	c, _ := server.Of(ctx)
	o.watch(ctx, string(c.Request().Method), func() { o.Server.Handle(ctx) })
}

// ProtocolError implements server.Handler.
func (o *observer) ProtocolError(ctx *fasthttp.RequestCtx, e server.ProtocolError) {
	o.watch(ctx, "", func() { o.Server.ProtocolError(ctx, e) })
}

func (o *observer) watch(ctx *fasthttp.RequestCtx, method string, handle func()) {
	o.now = handled{method: method}
	handle()
	o.now.reason = string(ctx.Response.Header.Peek("X-Sluice-Reason"))
	o.log = append(o.log, o.now)
}

// Send implements Upstream.
func (o *observer) Send(req *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
	text := req.AppendHead(nil, nil)
	text = bytes.Replace(text, []byte("\r\nHost: \r\n"), []byte("\r\nHost: upstream\r\n"), 1)
	outcome := upstream.Answered
	switch n := req.HTTP.Header.ContentLength(); {
	case !req.HTTP.IsBodyStream():
		text = append(text, req.HTTP.Body()...)
	default:
		body, err := io.ReadAll(req.HTTP.BodyStream())
		if err != nil {
			outcome = upstream.Broken
		}
		if n < 0 && len(body) > 0 {
			text = fmt.Appendf(text, "%x\r\n%s\r\n", len(body), body)
		} else {
			text = append(text, body...)
		}
		if n < 0 {
			text = append(text, "0\r\n\r\n"...)
		}
	}
	o.now.sent = append(o.now.sent, sentRequest{string(text), outcome})
	resp.SetBodyString("from the upstream")
	return outcome
}

// Upgrade implements Upstream: there is no other protocol.

func (o *observer) Upgrade(req *upstream.Request, resp *fasthttp.Response) (net.Conn, upstream.Outcome) {
	return nil, o.Send(req, resp)
}

// Acquire and Release implement Upstream.
func (o *observer) Acquire(*upstream.Request) bool {
	o.owed["connection"]++
	return true
}

func (o *observer) Release(*upstream.Request) { o.owed["connection"]-- }

// Closed, Enter and Leave implement Stock.
func (o *observer) Closed(int64, []byte) reject.Reason { return reject.Admitted }

func (o *observer) Enter(_ int64, sku, _ []byte) reject.Reason {
	o.now.sku = string(sku)
	o.owed["stock"]++
	return reject.Admitted
}

func (*observer) AwaitReading(int64, []byte, interface{ StepAside() }) (reject.Reason, bool) {
	return reject.Admitted, false
}

func (*observer) EnterAtOnce(int64, []byte, []byte) (reject.Reason, bool) {
	return reject.Admitted, false
}

func (o *observer) Leave([]byte) { o.owed["stock"]-- }

// fuzzedOrders and slots are the observer's Orders and Concurrency, whose methods have names of its other parts.
type (
	fuzzedOrders struct{ *observer }
	slots        struct{ *observer }
)

func (fuzzedOrders) Decided(int64, ledger.Order) (Reservation, bool) { return Reservation{}, false }
func (fuzzedOrders) LookUp(int64, ledger.Order) (Reservation, bool)  { return Reservation{}, false }

func (o fuzzedOrders) Reserve(_ int64, order ledger.Order) Reservation {
	o.now.sku, o.now.serial = string(order.SKU), "serial-of-the-ledger"
	o.owed["order"]++
	return Reservation{Serial: o.now.serial, Deadline: 1}
}

func (o fuzzedOrders) Settle(ledger.Order, string, metrics.OrderOutcome) { o.owed["order"]-- }

func (fuzzedOrders) State(int64, []byte, []byte) (OrderState, reject.Reason) {
	return OrderState{}, reject.Admitted
}

func (o slots) Acquire(limiter.Client, bool) reject.Reason { o.owed["slot"]++; return reject.Admitted }
func (slots) TryAcquire() bool                             { return false }
func (slots) Peek(bool) bool                               { return false }
func (o slots) Release(time.Duration)                      { o.owed["slot"]-- }

// Enabled, Handle, WithAttrs and WithGroup of faults implement slog.Handler: an error is a panic that was caught.
type faults struct{ *observer }

func (faults) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }
func (o faults) Handle(_ context.Context, r slog.Record) error {
	o.panic = r.Message
	r.Attrs(func(a slog.Attr) bool { o.panic += "\n" + a.String(); return true })
	return nil
}
func (o faults) WithAttrs([]slog.Attr) slog.Handler { return o }
func (o faults) WithGroup(string) slog.Handler      { return o }

// observed is a server of all gates on l, and its observer.
func observed(f *testing.F, l net.Listener) *observer {
	w := &observer{owed: map[string]int{}}
	o := options(w)
	o.Routes = []Route{
		{Name: "buy", Match: "POST /buy", Gate: route.Reserve, SKU: "$json_sku", User: "$arg_uid", Quantity: "$json_qty"},
	}
	o.Routes = append(o.Routes, orderRoutes...)
	o.Stock, o.Orders, o.Concurrency = w, fuzzedOrders{w}, slots{w}
	o.MaxQuantity, o.Outcomes = 3, OutcomeRules{ConfirmOn: []string{"2xx"}}
	o.Log = slog.New(faults{w})
	o.Trusted = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	p, err := New(o)
	if err != nil {
		f.Fatal(err)
	}
	w.Server = NewServer(p, ServerOptions{MaxHeader: 16 << 10, Connections: unlimited{}})
	s := server.NewServer(w, p.limits(16<<10, false), server.Options{Logger: slog.New(slog.DiscardHandler)})
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	f.Cleanup(func() { l.Close(); <-ended; s.Drain(f.Context()) })
	return w
}

// scriptConn is a connection on which one text arrives, and then nothing.
type scriptConn struct {
	repeater
	in     io.Reader
	out    bytes.Buffer
	closed chan struct{}
	once   sync.Once
}

func (c *scriptConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *scriptConn) Write(p []byte) (int, error) { return c.out.Write(p) }
func (c *scriptConn) Close() error                { c.once.Do(func() { close(c.closed) }); return nil }

const (
	shortOrder = "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nContent-Length: 2\r\n\r\nhi"
	jsonOrder  = "POST /buy?uid=7 HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: mine\r\nContent-Type: application/json\r\n" +
		"Content-Length: 22\r\n\r\n" + `{"sku":"1001","qty":2}`
	chunked = "Transfer-Encoding: chunked\r\n\r\n"
)

var fuzzSeeds = []string{
	shortOrder, jsonOrder, browserOrder, shortOrder + jsonOrder + shortOrder,
	strings.Replace(shortOrder, "1001", "10%3001", 1),
	strings.Replace(shortOrder, "POST /", "POST http://shop/", 1),
	strings.Replace(shortOrder, "/order", "/%6frder/", 1),
	strings.Replace(shortOrder, "Content-Length: 2\r\n\r\nhi", chunked+"2\r\nhi\r\n0\r\n\r\n", 1),
	strings.Replace(shortOrder, "Content-Length: 2\r\n\r\nhi", chunked+"2\r\nhix", 1),
	strings.Replace(shortOrder, "\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 1),
	strings.Replace(shortOrder, "\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n", 1),
	strings.Replace(jsonOrder, `{"sku":"1001","qty":2}`, `{"SKU":"1001","qty":9}`, 1),
	"GET /x HTTP/1.1\r\nHost: shop\r\nX-Original-URL: ?x\r\nX-HTTP-Method: PUT\r\n\r\n",
	"POST /x HTTP/1.1\r\nHost: shop\r\nX-Rewrite-URL: /buy\r\nX-Forwarded-For: 1.1.1.1\r\nVia: 1.1 x\r\n\r\n",
	"GET http://shop/x?y=1 HTTP/1.1\r\nHost: shop\r\nConnection: close, X-A\r\nX-A: 1\r\nX-B: 2\r\nX-B: 3\r\n\r\n",
	"PUT /%2e%2e//a\\b?y=100% HTTP/1.1\r\nHost: shop\r\n" + chunked + "1\r\na\r\n0\r\n\r\nGET / HTTP/1.0\r\n\r\n",
	"HEAD /search/ HTTP/1.1\r\nHost: shop\r\n\r\nGET /.sluice/client.js HTTP/1.1\r\nHost: shop\r\n\r\n",
	"GET /.sluice/orders/a?sku=b HTTP/1.1\r\nHost: shop\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: shop\r\n\r\n",
}

// Whatever arrives on a connection: no panic, one whole answer to each request, at most one request to the upstream for
// each, none for one that was rejected, and that one lawful, canonical, and about the SKU that was judged. All that was
// acquired is released.
func FuzzHandle(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s))
	}
	l := newConnections()
	w := observed(f, l)
	f.Fuzz(func(t *testing.T, raw []byte) {
		w.log, w.panic = nil, ""
		clear(w.owed)
		c := &scriptConn{in: bytes.NewReader(raw), closed: make(chan struct{})}
		l.queue <- c
		<-c.closed
		if w.panic != "" {
			t.Fatalf("%q: a panic was caught: %s", raw, w.panic)
		}
		for what, n := range w.owed {
			if n != 0 {
				t.Fatalf("%q: %s: %d more were acquired than released", raw, what, n)
			}
		}
		checkAnswers(t, raw, c.out.Bytes(), w.log)
		for _, h := range w.log {
			checkForwarding(t, raw, h)
		}
	})
}

// checkAnswers reads out as one whole answer to each request.
func checkAnswers(t *testing.T, raw, out []byte, log []handled) {
	in := bufio.NewReader(bytes.NewReader(out))
	for _, h := range log {
		status := 100
		for status < 200 {
			resp, err := http.ReadResponse(in, &http.Request{Method: h.method})
			if err == nil {
				status = resp.StatusCode
				_, err = io.Copy(io.Discard, resp.Body)
			}
			if err != nil {
				t.Fatalf("%q: no whole answer to %+v in %q: %v", raw, h, out, err)
			}
		}
	}
	if _, err := in.ReadByte(); err == nil {
		t.Fatalf("%q: more answers than requests: %q", raw, out)
	}
}

// brokenUpload reports reasons for which a request was rejected that the upstream had begun to read.
func brokenUpload(reason string) bool { return reason == "malformed" || reason == "upstream_error" }

func checkForwarding(t *testing.T, raw []byte, h handled) {
	if len(h.sent) > 1 {
		t.Fatalf("%q: sent %d times: %v", raw, len(h.sent), h.sent)
	}
	for _, s := range h.sent {
		if s.outcome == upstream.Broken {
			if !brokenUpload(h.reason) || h.sku != "" {
				t.Fatalf("%q: rejected for %q, of SKU %q, and its body broke off", raw, h.reason, h.sku)
			}
			continue
		}
		if h.reason != "" {
			t.Fatalf("%q: rejected for %s, and the upstream saw %q", raw, h.reason, s.text)
		}
		checkSent(t, raw, h, s.text)
	}
}

// checkSent reads a request as the upstream does, and by the rules for clients.
func checkSent(t *testing.T, raw []byte, h handled, sent string) {
	var req fasthttp.Request
	in := bufio.NewReader(strings.NewReader(sent))
	if err := req.Read(in); err != nil {
		t.Fatalf("%q became %q: %v", raw, sent, err)
	}
	if in.Buffered() > 0 {
		t.Fatalf("%q became %q: %d bytes too many", raw, sent, in.Buffered())
	}
	again, err := server.Read(sent, netip.Addr{}, server.Limits{})
	if err != nil {
		t.Fatalf("%q became %q, which is rejected itself: %v", raw, sent, err)
	}
	if h.sku == "" {
		return
	}
	sku := ""
	if h.serial != "" {
		sku = jsonSKU(req.Body())
		keys := ""
		for name, value := range again.Request().Fields {
			if octets.EqualFieldName(name, idempotencyKey) {
				keys += string(value)
			}
		}
		if keys != h.serial {
			t.Fatalf("%q became %q: not the order %s", raw, sent, h.serial)
		}
	} else if parts := bytes.Split(again.Request().Path, []byte("/")); len(parts) == 5 {
		sku = string(octets.Unescape(nil, parts[3]))
	}
	if sku != h.sku || again.Request().Target[0] != '/' {
		t.Fatalf("%q became %q: judged as SKU %q, the upstream reads %q", raw, sent, h.sku, sku)
	}
}

// jsonSKU is the SKU that the upstream reads out of a body.
func jsonSKU(body []byte) string {
	order := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&order) != nil {
		return ""
	}
	return fmt.Sprint(order["sku"])
}
