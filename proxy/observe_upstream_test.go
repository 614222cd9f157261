package proxy

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// observeException is a request that does not reach the upstream as it was sent, by design.
type observeException struct {
	part   string // of the raw request, by which it is known
	reason string
	adapt  func(a *arrival) // what the upstream shall receive in the place of a
}

// dropped is an exception of a field that is not forwarded.
func dropped(name, value, reason string) observeException {
	return observeException{part: name + ": " + value + "\r\n", reason: reason,
		adapt: func(a *arrival) { a.fields = without(a.fields, name) }}
}

// observeExceptions are all that the proxy changes in observe mode beside its documented additions.
var observeExceptions = []observeException{
	dropped("X-Forwarded-For", "192.0.2.1", "of an untrusted client: the proxy says itself where a request comes from"),
	dropped("X-Forwarded-Proto", "https", "likewise"),
	dropped("X-Forwarded-Host", "other", "likewise"),
	dropped("X-Forwarded-Port", "443", "likewise"),
	dropped("X_Forwarded_For", "192.0.2.1", "CGI, WSGI and PHP read it as X-Forwarded-For"),
	dropped("x-forwarded_proto", "https", "likewise"),
	dropped("Forwarded", "for=192.0.2.1", "of an untrusted client"),
	dropped("X-Real-IP", "192.0.2.1", "of an untrusted client"),
	dropped("X_Real_IP", "192.0.2.1", "CGI reads it as X-Real-IP"),
	dropped("X-Client-IP", "192.0.2.1", "of an untrusted client"),
	dropped("True-Client-IP", "192.0.2.1", "of an untrusted client"),
	dropped("CF-Connecting-IP", "192.0.2.1", "of an untrusted client"),
	dropped("X-Cluster-Client-IP", "192.0.2.1", "of an untrusted client"),
	dropped("Sluice-Sku", "1", "the upstream believes it to be the proxy's"),
	dropped("sluice_quantity", "9", "CGI reads it as Sluice-Quantity"),
	dropped("Proxy", "http://a", "CGI takes it for the setting HTTP_PROXY"),
	dropped("Proxy-Authorization", "Basic x", "it is about one connection (RFC 9110, section 11.7.2)"),
	dropped("X_Request_Id", "x", "CGI reads it as X-Request-Id"),
	dropped("X-Request-Id", `bad"id`, "it does not fit into a header or a log line: the proxy makes another one"),
	dropped("X-Request-Id", "", "likewise"),
	dropped("X-Request-Id", strings.Repeat("x", 200), "likewise"),
	{part: "X-Request-ID: my-own.1\r\n", reason: "the name is written as server.request_id_header has it",
		adapt: func(a *arrival) { a.fields = append(without(a.fields, "X-Request-Id"), "X-Request-Id: my-own.1") }},
	{part: "X-Request-Id: one\r\nX-Request-Id: two\r\n", reason: "a request has one id",
		adapt: func(a *arrival) { a.fields = append(without(a.fields, "X-Request-Id"), "X-Request-Id: one") }},
	{part: "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n", reason: "what would follow is not HTTP/1.1",
		adapt: func(a *arrival) { a.fields = without(without(a.fields, "Upgrade"), "HTTP2-Settings") }},
	{part: "Upgrade: websocket\r\nX-Alone: 1\r\n",
		reason: "without Connection: Upgrade it asks for nothing (RFC 9110, section 7.8)",
		adapt:  func(a *arrival) { a.fields = without(a.fields, "Upgrade") }},
	{part: "POST http://shop/check/1001?a=b", reason: "the path of an order is the one that was checked",
		adapt: func(a *arrival) { a.target = "/check/1001?a=b" }},
}

// observeRejections are legal requests that are rejected in observe mode, too: behind them no next request could be
// found for certain, or servers read them in two ways.
var observeRejections = []struct {
	raw    string
	status int
	reason string
}{
	{head("TRACE", "/page", ""), 405, "it would echo secrets"},
	{"CONNECT shop:80 HTTP/1.1\r\nHost: shop:80\r\n\r\n", 501, "the upstream is no proxy"},
	{head("GET", "http://other/page", ""), 400, "the target names another host than Host"},
	{strings.Replace(head("GET", "/page", ""), "shop", "", 1), 400, "Host is empty"},
	{strings.Replace(head("GET", "/page", ""), "shop", "shop:", 1), 400, "a port without digits"},
	{strings.Replace(head("GET", "/page", ""), "shop", "a%2Fb", 1), 400, "a name with an escape"},
	{head("GET", "/page%00", ""), 400, "%00 ends a path in some servers"},
	{head("GET", "/page%0a", ""), 400, "%0a ends a line in some servers"},
	{head("POST", "/page", "Content-Length: 05\r\n") + "hello", 400, "some servers read a leading zero as octal"},
	{head("POST", "/page", "Content-Length: 2, 2\r\n") + "hi", 400, "servers read a list of lengths in different ways"},
	{head("POST", "/page", "Content-Length: 2\r\nContent-Length: 2\r\n") + "hi", 400, "likewise"},
	{head("POST", "/page", "Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n", 400, "few servers know it"},
	{head("POST", "/page", "Transfer-Encoding: chunked\r\n") + "2;x=y\r\nhi\r\n0\r\n\r\n", 400, "a chunk extension"},
	{head("POST", "/page", "Transfer-Encoding: chunked\r\n") + "2\r\nhi\r\n0\r\nX-A: b\r\n\r\n", 400, "a trailer"},
	{head("POST", "/page", "Trailer: X-A\r\nContent-Length: 0\r\n"), 400, "likewise"},
	{head("POST", "/page", "Expect: more\r\nContent-Length: 0\r\n"), 417, "an expectation that is not known"},
	{head("GET", "/page", "Connection: Cookie\r\nCookie: uid=7\r\n"), 400, "a hop would remove who the user is"},
	{head("GET", "/page", "Content_Length: 5\r\n"), 400, "CGI reads it as Content-Length"},
	{head("GET", "/"+strings.Repeat("x", 9<<10), ""), 414, "longer than 8 KiB"},
	{head("GET", "/page", "X-Long: "+strings.Repeat("x", 33<<10)+"\r\n"), 431, "server.max_header_size"},
}

// The limits of a server in observe mode.
const (
	allAdmit    = "all admit"
	allReject   = "all reject"
	denyAtOnce  = "the client is denied" // so that no other check is asked
	overTheRate = "the connection is over its rate"
)

// observing starts a server in observe mode with routes of all gates.
func observing(t *testing.T, target, limits string, orders Orders) (addr string, p *Proxy) {
	t.Helper()
	pool, err := upstream.New(upstream.Options{
		Targets: []string{"http://" + target}, Policy: "least_conn", MaxConns: 16, ConnectTimeout: time.Minute,
		ResponseTimeout: time.Minute, Timeout: time.Minute, IdleConnTimeout: time.Minute, Retry: "off",
	})
	if err != nil {
		t.Fatal(err)
	}
	o := options(pool)
	o.Observe, o.MaxBody = true, 64<<10
	o.Routes = []Route{
		{Name: "check", Match: "POST /check/{sku}", Gate: route.Check, SKU: "$path_sku", User: "$json_user"},
		{Name: "check page", Match: "/check/{sku}", Gate: route.Check, SKU: "$path_sku", User: "$cookie_uid"},
		{Name: "reserve", Match: "/reserve/{sku}", Gate: route.Reserve, SKU: "$path_sku", User: "$cookie_uid",
			Quantity: "$json_qty"},
		{Name: "limit", Match: "/limit/", Gate: route.Limit, SKU: "$arg_a", User: "$http_x_user"},
		{Name: "rest", Match: "/", Gate: route.Pass},
	}
	o.Orders = orders
	o.Rates = []Rate{{Name: "users", Key: "$cookie_uid", Limiter: usedUp{}, Observe: limits == allAdmit}}
	slots := &connSlots{left: 1 << 20}
	switch limits {
	case denyAtOnce:
		o.Deny, slots.left = loopback, 0
	case overTheRate:
		o.ConnRate = func() ConnRateLimiter { return &firstRequests{} }
	case allReject:
		o.Stock = &stockMap{closed: map[string]reject.Reason{"1001": reject.SoldOut}}
		o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { return time.Second, false })
		o.Concurrency = slotFunc(func() reject.Reason { return reject.QueueTimeout })
	}
	if p, err = New(o); err != nil {
		t.Fatal(err)
	}
	s := NewServer(p, ServerOptions{MaxHeader: 32 << 10, Connections: slots, Log: slog.New(slog.DiscardHandler)})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(ln) }()
	t.Cleanup(func() { ln.Close(); s.Drain(t.Context()); <-served; pool.Close() })
	return ln.Addr().String(), p
}

// noUnits has no unit for any order.
type noUnits struct{ Orders }

func (noUnits) Decided(int64, ledger.Order) (Reservation, bool) { return Reservation{}, false }
func (noUnits) Reserve(int64, ledger.Order) Reservation         { return Reservation{Reason: reject.SoldOut} }

// deliver sends raw on a connection of its own, and returns the status of the response.
func deliver(t *testing.T, addr, raw string) (status int, body string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	go func() { _, _ = io.WriteString(c, raw) }()
	in := bufio.NewReader(c)
	method, _, _ := strings.Cut(strings.TrimSpace(raw), " ")
	for {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%.200q: no response: %v", raw, err)
		}
		if resp.StatusCode == http.StatusContinue {
			continue
		}
		all, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(all)
	}
}

// exceptionOf is the exception that a request is, if any.
func exceptionOf(raw string) *observeException {
	for i := range observeExceptions {
		if e := &observeExceptions[i]; strings.Contains(raw, e.part) {
			return e
		}
	}
	return nil
}

// expected is what the upstream shall receive through the proxy for a request that arrives as direct without it.
func expected(direct arrival, raw, own string) arrival {
	want := direct
	want.fields = slices.Clone(direct.fields)
	want.endToEnd()
	if want.host == "" { // HTTP/1.0 without Host is forwarded as HTTP/1.1, which needs one (RFC 9112, section 3.2)
		want.host = own
	}
	if e := exceptionOf(raw); e != nil {
		e.adapt(&want)
	}
	want.fields = lastOnes(want.fields)
	return want
}

// stripAdditions removes what the proxy adds, and reports what of it is missing.
func (a *arrival) stripAdditions(clients []string) (missing string) {
	a.fields = slices.DeleteFunc(a.fields, func(line string) bool { return line == "Connection: Upgrade" })
	for _, name := range addedFields {
		a.fields = moveLast(a.fields, name)
		last := ""
		if n := len(a.fields); n > 0 {
			last = a.fields[n-1]
		}
		keep := name == "X-Request-Id" && slices.Contains(clients, last) // the client's own
		switch {
		case strings.HasPrefix(last, name+": ") && !keep:
			a.fields = a.fields[:len(a.fields)-1]
		case !keep && (name != "X-Forwarded-Host" || a.host == ""):
			missing = name
		}
	}
	a.fields = lastOnes(a.fields)
	return missing
}

func TestObserve_UpstreamReceivesWhatItWouldWithoutTheGate(t *testing.T) {
	to := newWireUpstream(t)
	all := legalRequests()
	for _, e := range observeExceptions {
		if strings.HasSuffix(e.part, "\r\n") && !strings.Contains(e.part, " HTTP/1.") {
			all = append(all, legalRequest{"exception " + clip(e.part), head("GET", "/page", e.part)})
		}
	}
	if len(all) < 300 {
		t.Errorf("%d requests, want 300", len(all))
	}
	for _, limits := range []string{allAdmit, allReject, overTheRate, denyAtOnce} {
		addr, p := observing(t, to.addr, limits, noUnits{})
		for _, q := range all {
			deliver(t, to.addr, q.raw)
			direct := <-to.arrivals
			status, body := deliver(t, addr, q.raw)
			if status != 200 {
				t.Errorf("%s is answered %d %s", q.name, status, body)
				continue
			}
			want, got := expected(direct, q.raw, to.addr), <-to.arrivals
			missing := got.stripAdditions(want.fields)
			if !slices.Equal(got.fields, want.fields) || missing != "" {
				t.Errorf("%s: fields %.2000q, want %.2000q; without %q", q.name, got.fields, want.fields, missing)
			}
			got.fields, want.fields = nil, nil
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %.2000q, want %.2000q", q.name, fmt.Sprint(got), fmt.Sprint(want))
			}
		}
		if n := p.Counters().Totals(); n.Rejected != [reject.NumReasons]uint64{} || n.Forwarded != uint64(len(all)) {
			t.Errorf("of %d requests %d are forwarded, %v rejected", len(all), n.Forwarded, n.Rejected)
		}
	}
	t.Logf("%d requests", len(all))
}

// Observe mode reserves units as enforcing does, and then tells the upstream so: those fields are the one addition that
// depends on a decision.
func TestObserve_ReservedOrderCarriesItsSerial(t *testing.T) {
	to := newWireUpstream(t)
	addr, _ := observing(t, to.addr, allAdmit, oneSerial{})
	raw := head("POST", "/reserve/1001", "Idempotency-Key: mine\r\nCookie: uid=7\r\nContent-Type: application/json\r\n"+
		"Content-Length: 9\r\n")
	if status, body := deliver(t, addr, raw+`{"qty":2}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	got := <-to.arrivals
	got.stripAdditions(nil)
	want := []string{"Cookie: uid=7", "Content-Type: application/json", "Idempotency-Key: s-1", "Sluice-Sku: 1001",
		"Sluice-Quantity: 2", "Sluice-Deadline: 4102444800123"}
	if !slices.Equal(got.fields, want) || got.body != `{"qty":2}` {
		t.Errorf("%+v, want %q", got, want)
	}
}

func TestObserve_RejectsLegalRequestsThatServersReadInTwoWays(t *testing.T) {
	to := newWireUpstream(t)
	addr, _ := observing(t, to.addr, denyAtOnce, noUnits{})
	for _, c := range observeRejections {
		if status, body := deliver(t, addr, c.raw); status != c.status {
			t.Errorf("%.200q (%s): %d %s, want %d", c.raw, c.reason, status, body, c.status)
		}
	}
	select {
	case a := <-to.arrivals:
		t.Errorf("the upstream got %+v", a)
	default:
	}
}
