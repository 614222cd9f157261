package proxy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reading"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/server"
	"sluice/stockgate/ledger/protocol"
)

// decider starts a Server that answers questions in a dialect.
func decider(t *testing.T, o Options, dialect string) (addr string, p *Proxy) {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, p, ServerOptions{Decide: &Decide{Dialect: dialect, Peers: loopback}}), p
}

// question is how a proxy of a dialect asks about a request without a body. fields are further lines of its head.
func question(dialect, method, target, host, fields string) string {
	switch d := dialects[dialect]; {
	case d.below:
		return fmt.Sprintf("%s /decide%s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: 192.0.2.1\r\n%s\r\n", method, target, host,
			fields)
	case d.host != "":
		return fmt.Sprintf("GET /decide HTTP/1.1\r\nHost: sluice\r\n%s: %s\r\n%s: %s\r\n%s: %s\r\nX-Forwarded-For: "+
			"192.0.2.1\r\n%s\r\n", d.method, method, d.target, target, d.host, host, fields)
	default:
		return fmt.Sprintf("GET /decide HTTP/1.0\r\nHost: %s\r\n%s: %s\r\n%s: %s\r\nX-Forwarded-For: 192.0.2.1\r\n%s\r\n",
			host, d.method, method, d.target, target, fields)
	}
}

func TestDecide_EachDialectIsAnsweredAsTheProxyAnswers(t *testing.T) {
	o := options(&recorder{})
	soldOutSKU(&o)
	front, _ := gateway(t, o)
	for dialect := range dialects {
		addr, _ := decider(t, o, dialect)
		for _, c := range []struct{ method, target, fields, reason string }{
			{"POST", "/api/seckill/1002/order", "Cookie: uid=7\r\n", ""},
			{"HEAD", "/page", "", ""},
			{"POST", "/api/seckill/1001/order", "Cookie: uid=7\r\n", "sold_out"},
			{"POST", "/api/seckill/1001/order", "Cookie: uid=7\r\nAccept: text/html\r\nAccept-Language: zh\r\n", "sold_out"},
			{"POST", "/api/seckill/1002/order", "", "bad_request"},
			{"POST", "/api//seckill/1002/order", "Cookie: uid=7\r\n", "ambiguous"},
			{"GET", "/.sluice/client.js", "", "no_route"},
			{"GET", "/%00", "", "malformed"},
		} {
			resp, body := talk(t, addr, question(dialect, c.method, c.target, "shop", c.fields))
			if c.reason == "" {
				if resp.StatusCode != 200 || resp.Header.Get("X-Request-Id") == "" || body != "" {
					t.Errorf("%s, %s %s: %d %v %s", dialect, c.method, c.target, resp.StatusCode, resp.Header, body)
				}
				continue
			}
			status := fmt.Sprint(resp.StatusCode)
			if dialects[dialect].only403 {
				if status != "403" || body != "" {
					t.Errorf("%s, %s: %s %q, want 403 alone", dialect, c.target, status, body)
				}
				status = resp.Header.Get(statusHeader)
				if c.reason != "malformed" { // of which there is no request
					resp, body = talk(t, addr, "GET /rejection HTTP/1.1\r\nHost: shop\r\n"+rejectionHeader+": "+
						resp.Header.Get(rejectionHeader)+"\r\n"+c.fields+"\r\n")
				}
			}
			direct, page := talk(t, front, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: shop\r\nX-Request-Id: %s\r\n%s\r\n", c.method,
				c.target, resp.Header.Get("X-Request-Id"), c.fields))
			if c.reason == "no_route" { // the proxy answers it itself
				continue
			}
			reason, kind := resp.Header.Get("X-Sluice-Reason"), resp.Header.Get("Content-Type")
			if reason != c.reason || status != fmt.Sprint(direct.StatusCode) ||
				body != page && c.reason != "malformed" || kind != direct.Header.Get("Content-Type") {
				t.Errorf("%s, %s: %s %s %q, want %d %s %q", dialect, c.target, status, reason, body, direct.StatusCode, c.reason,
					page)
			}
		}
	}
}

// The shop's own form of answers may have the status 200. No proxy may take that for an admission.
func TestDecide_NoRejectionLooksLikeAnAdmission(t *testing.T) {
	o := options(&recorder{})
	soldOutSKU(&o)
	o.Responses.Format = reject.Envelope
	for dialect := range dialects {
		addr, _ := decider(t, o, dialect)
		resp, _ := talk(t, addr, question(dialect, "POST", "/api/seckill/1001/order", "shop", "Cookie: uid=7\r\n"))
		if resp.StatusCode != 403 || resp.Header.Get(statusHeader) != "200" {
			t.Errorf("%s: %d %v", dialect, resp.StatusCode, resp.Header)
		}
	}
}

// The answer is framed for the question, whatever the method is that it is about.
func TestDecide_QuestionsShareAConnection(t *testing.T) {
	addr, _ := decider(t, options(&recorder{}), "caddy")
	c := connect(t, addr)
	for _, method := range []string{"HEAD", "POST", "HEAD", "GET"} {
		for _, target := range []string{"/page", "/"} {
			c.send(question("caddy", method, target, "shop", "Content-Length: 5\r\n") + "body.")
			if resp, body := c.receive("GET"); resp.StatusCode != 200 || resp.Close || body != "" {
				t.Fatalf("%s %s: %d %v %q", method, target, resp.StatusCode, resp.Header, body)
			}
		}
	}
}

func TestDecide_UntrustedPeersDecideNothing(t *testing.T) {
	o, seen := options(&recorder{}), &settledOrders{}
	o.Orders, o.Routes = seen, []Route{reserveRoute}
	for _, observe := range []bool{false, true} {
		o.Observe = observe
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		addr := serve(t, p, ServerOptions{Decide: &Decide{Dialect: "caddy",
			Peers: TrustedProxies{netip.MustParsePrefix("192.0.2.0/24")}}})
		for _, raw := range []string{
			question("caddy", "POST", "/api/seckill/1001/order", "shop", "Cookie: uid=7\r\n"),
			question("caddy", "GET", "/", "shop", ""),
			"POST /settle?serial=s-1&status=200 HTTP/1.1\r\nHost: shop\r\n\r\n",
			"GET /rejection HTTP/1.1\r\nHost: shop\r\n\r\n",
		} {
			if resp, body := talk(t, addr, raw); resp.StatusCode != 403 || !strings.Contains(body, "trusted_proxies") {
				t.Errorf("observe %v, %q: %d %s", observe, raw, resp.StatusCode, body)
			}
		}
	}
	if len(seen.calls()) > 0 || seen.reserved > 0 {
		t.Errorf("orders were touched: %d reserved, %q", seen.reserved, seen.calls())
	}
}

func TestDecide_QuestionSaysAllOfTheRequestOnce(t *testing.T) {
	o := options(&recorder{})
	addr, _ := decider(t, o, "traefik")
	whole := question("traefik", "GET", "/page", "shop", "")
	for _, field := range []string{"X-Forwarded-Method: GET", "X-Forwarded-Uri: /page", "X-Forwarded-Host: shop",
		"X-Forwarded-For: 192.0.2.1"} {
		name, _, _ := strings.Cut(field, ":")
		cases := []string{strings.Replace(whole, field+"\r\n", "", 1)}
		if name != "X-Forwarded-For" { // which is a list
			cases = append(cases, strings.Replace(whole, field, field+"\r\n"+strings.ToLower(field), 1))
		}
		for _, raw := range cases {
			if resp, body := talk(t, addr, raw); resp.StatusCode != 400 || !strings.Contains(body, name) {
				t.Errorf("%q: %d %s", raw, resp.StatusCode, body)
			}
		}
	}
	for _, raw := range []string{
		strings.Replace(whole, "Uri: /page", "Uri: http://other/page", 1), strings.Replace(whole, ": /page", ": /a b", 1),
		strings.Replace(whole, "Method: GET", "Method: GET /x", 1), strings.Replace(whole, "Method: GET", "Method:", 1),
		strings.Replace(whole, "Uri: /page", "Uri: http://user@shop/page", 1), strings.Replace(whole, ": shop", ": a b", 1),
		strings.Replace(whole, "Uri: /page", "Uri:", 1), strings.Replace(whole, "GET /decide", "GET /elsewhere", 1),
	} {
		if resp, body := talk(t, addr, raw); resp.StatusCode < 400 {
			t.Errorf("%q: %d %s", raw, resp.StatusCode, body)
		}
	}
}

// The client is the one that the proxy names, and what the proxy says of it is not believed of others.
func TestDecide_ClientIsTheOneThatTheProxyNames(t *testing.T) {
	o := options(&recorder{})
	o.Deny = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	addr, _ := decider(t, o, "nginx")
	denied := strings.Replace(question("nginx", "GET", "/page", "shop", ""), "192.0.2.1", "192.0.2.1, 198.51.100.7", 1)
	if resp, _ := talk(t, addr, denied); resp.Header.Get("X-Sluice-Reason") != "denied_ip" {
		t.Errorf("%v", resp.Header)
	}
	left := strings.Replace(denied, "192.0.2.1, 198.51.100.7", "198.51.100.7, 192.0.2.1", 1)
	if resp, _ := talk(t, addr, left); resp.StatusCode != 200 {
		t.Errorf("a client chooses its address: %v", resp.Header)
	}
}

func TestDecide_OrdersThatMayStandInTheBodyAreAmbiguous(t *testing.T) {
	o := options(&recorder{})
	const form = "Content-Type: application/x-www-form-urlencoded\r\n"
	for _, one := range []bool{false, true} {
		o.Routes = bought(one, false)
		addr, _ := decider(t, o, "envoy")
		arg := "ambiguous"
		if one {
			arg = ""
		}
		for _, c := range []struct{ target, fields, reason string }{
			{"/form", form, "ambiguous"}, {"/form", "", "ambiguous"}, {"/arg?sku=1", form, arg}, {"/arg?sku=1", "", arg},
			{"/arg?sku=1", "Content-Type: application/json\r\n", arg}, {"/path/1", form, ""},
		} {
			resp, body := talk(t, addr, question("envoy", "POST", c.target, "shop", c.fields))
			if reason := resp.Header.Get("X-Sluice-Reason"); reason != c.reason {
				t.Errorf("one source %v, %s, %q: %d %s", one, c.target, c.fields, resp.StatusCode, body)
			}
		}
	}
}

// settledOrders are orders that note what becomes of them.
type settledOrders struct {
	fixedOrders
	mu       sync.Mutex
	reserved int
	settled  []string
	state    protocol.Status
}

func (s *settledOrders) Decided(int64, protocol.Order) (Reservation, bool) {
	return Reservation{}, false
}

func (s *settledOrders) Reserve(int64, protocol.Order) Reservation {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved++
	return Reservation{Serial: fmt.Sprintf("s-%d", s.reserved), Deadline: 1_700_000_000_123}
}

func (s *settledOrders) Settle(sku []byte, serial string, outcome metrics.OrderOutcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, fmt.Sprintf("%s %s %s", sku, serial, outcome))
}

func (s *settledOrders) State(_ int64, _, serial []byte) (OrderState, reject.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return OrderState{SKU: "1001", State: s.state}, reject.Admitted
}

func (s *settledOrders) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.settled...)
}

func (s *settledOrders) become(state protocol.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.settled = state, nil
}

// settling is a Server with a reserving route, and its orders.
func settling(t *testing.T, within time.Duration) (addr string, seen *settledOrders) {
	t.Helper()
	seen = &settledOrders{}
	o := options(&recorder{})
	o.Orders, o.Routes, o.SettleWithin = seen, []Route{reserveRoute}, within
	o.Settlement = OutcomeRules{ConfirmOn: []string{"2xx"}, ReleaseOn: []string{"4xx"}}
	addr, _ = decider(t, o, "haproxy")
	return addr, seen
}

func settle(t *testing.T, addr, serial, status, fields string) (code int, state string) {
	t.Helper()
	resp, body := talk(t, addr, "POST /settle?serial="+serial+"&status="+status+" HTTP/1.1\r\nHost: sluice\r\n"+
		fields+"\r\n")
	var said struct{ State string }
	_ = json.Unmarshal([]byte(body), &said) // a rejection has none
	return resp.StatusCode, said.State
}

func TestDecide_AdmittedOrderIsSettledByACall(t *testing.T) {
	addr, seen := settling(t, time.Hour)
	admit := func() string {
		resp, body := talk(t, addr, question("haproxy", "POST", "/api/seckill/1001/order", "shop", "Cookie: uid=7\r\n"))
		serial := resp.Header.Get("Sluice-Serial")
		if resp.StatusCode != 200 || serial == "" || resp.Header.Get("Idempotency-Key") != serial ||
			resp.Header.Get("Sluice-Sku") != "1001" || resp.Header.Get("Sluice-Deadline") != "1700000000123" {
			t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, body)
		}
		return serial
	}
	if serial := admit(); len(seen.calls()) > 0 {
		t.Errorf("%s was settled without a call: %q", serial, seen.calls())
	}
	for _, c := range []struct{ status, fields, state, outcome string }{
		{"201", "", "sold", "confirmed"}, {"409", "", "released", "released"}, {"500", "", "held", "unknown"},
		{"408", "", "held", "unknown"}, {"200", "Sluice-Order: sold-out\r\n", "released", "released"},
	} {
		serial := admit()
		seen.become(protocol.StatusNone)
		for i := range 2 { // the second time changes nothing
			if code, state := settle(t, addr, serial, c.status, c.fields); code != 200 || state != c.state {
				t.Errorf("%s, call %d: %d %s, want 200 %s", c.status, i+1, code, state, c.state)
			}
		}
		if got := seen.calls(); len(got) != 1 || got[0] != "1001 "+serial+" "+c.outcome {
			t.Errorf("%s: %q", c.status, got)
		}
	}
	serial := admit()
	settle(t, addr, serial, "201", "")
	if code, state := settle(t, addr, serial, "409", ""); code != 409 || state != "sold" {
		t.Errorf("another outcome: %d %s", code, state)
	}
	serial = admit()
	settle(t, addr, serial, "502", "")
	if code, state := settle(t, addr, serial, "201", ""); code != 200 || state != "sold" {
		t.Errorf("an outcome after none: %d %s", code, state)
	}
}

func TestDecide_SettlesOrdersThatAreNotOpenByTheLedger(t *testing.T) {
	addr, seen := settling(t, time.Hour)
	for _, c := range []struct {
		state   protocol.Status
		status  string
		code    int
		becomes string
		calls   int
	}{
		{protocol.StatusNone, "201", 404, "none", 0}, {protocol.StatusHeld, "201", 200, "sold", 1},
		{protocol.StatusHeld, "404", 200, "released", 1},
		{protocol.StatusSold, "201", 200, "sold", 0}, {protocol.StatusSold, "409", 409, "sold", 0},
		{protocol.StatusReleased, "201", 409, "released", 0}, {protocol.StatusReleased, "500", 200, "released", 0},
	} {
		seen.become(c.state)
		if code, state := settle(t, addr, "s-9", c.status, ""); code != c.code || state != c.becomes ||
			len(seen.calls()) != c.calls {
			t.Errorf("%s, told %s: %d %s %q", c.state, c.status, code, state, seen.calls())
		}
	}
	for _, query := range []string{"serial=s-9", "status=200", "serial=s-9&status=abc", "serial=&status=200", "%zz"} {
		resp, _ := talk(t, addr, "POST /settle?"+query+" HTTP/1.1\r\nHost: sluice\r\n\r\n")
		if resp.StatusCode != 400 {
			t.Errorf("%s: %d", query, resp.StatusCode)
		}
	}
	resp, _ := talk(t, addr, "GET /settle?serial=s-9&status=200 HTTP/1.1\r\nHost: sluice\r\n\r\n")
	if resp.StatusCode != 400 {
		t.Errorf("GET: %d", resp.StatusCode)
	}
}

func TestDecide_WithoutACallTheResolverAsks(t *testing.T) {
	addr, seen := settling(t, time.Millisecond)
	talk(t, addr, question("haproxy", "POST", "/api/seckill/1001/order", "shop", "Cookie: uid=7\r\n"))
	testkit.Eventually(t, "the resolver asks", func() bool {
		return len(seen.calls()) == 1 && seen.calls()[0] == "1001 s-1 unknown"
	})
}

// singleSlot is a concurrency limit of one.
type singleSlot struct {
	slotFunc
	mu   sync.Mutex
	used int
}

func (s *singleSlot) TryAcquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used > 0 {
		return false
	}
	s.used++
	return true
}

func (s *singleSlot) Release(time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
}

func TestDecide_SlotIsHeldUntilTheCallOrTheEndOfItsTime(t *testing.T) {
	for _, within := range []time.Duration{time.Hour, time.Millisecond} {
		o := options(&recorder{})
		slots := &singleSlot{slotFunc: func() reject.Reason { return reject.Concurrency }}
		o.Concurrency, o.SettleWithin = slots, within
		o.Routes = []Route{{Name: "search", Match: "/search/", Gate: route.Limit}}
		addr, _ := decider(t, o, "nginx")
		ask := question("nginx", "GET", "/search/", "shop", "")
		resp, _ := talk(t, addr, ask)
		serial := resp.Header.Get("Sluice-Serial")
		if resp.StatusCode != 200 || serial == "" {
			t.Fatalf("%d %v", resp.StatusCode, resp.Header)
		}
		if within == time.Hour {
			if resp, _ := talk(t, addr, ask); resp.Header.Get("X-Sluice-Reason") != "concurrency" {
				t.Errorf("the slot is free while the proxy forwards: %v", resp.Header)
			}
			if code, state := settle(t, addr, serial, "200", ""); code != 200 || state != "ended" {
				t.Errorf("%d %s", code, state)
			}
			if code, _ := settle(t, addr, serial, "200", ""); code != 404 {
				t.Errorf("a slot was given back twice: %d", code)
			}
		}
		testkit.Eventually(t, "the slot is free", func() bool {
			resp, _ := talk(t, addr, ask)
			return resp.StatusCode == 200
		})
	}
}

// What two readers could read differently is decided in a question as in a request that is forwarded.
func FuzzQuestions(f *testing.F) {
	for _, row := range reading.Table {
		if row.Kind == reading.Target || row.Kind == reading.Slash {
			f.Add("POST", row.Input, "user_id=7")
			f.Add("POST", strings.Replace(row.Input, "/order/7", "/slash/7", 1), "user_id=7")
		}
		if row.Kind == reading.Cookie {
			f.Add("POST", "/order/7", "user_id=7; "+strings.Replace(row.Input, "goods", "user", 1))
		}
	}
	for _, target := range []string{"//order/7", "/order%2f7", "http://shop/order/7", "http://a@shop/order/7", "*", "/x y",
		"/order/7\t", "/a/../order/7", "/order/7?a#b", "http://other/", ""} {
		f.Add("POST", target, "user_id=7")
		f.Add("OPTIONS", target, "user_id=7")
	}
	o := options(&recorder{})
	o.Routes = gatedRoutes
	p, err := New(o)
	if err != nil {
		f.Fatal(err)
	}
	peer := netip.MustParseAddr("127.0.0.1")
	plain := NewServer(p, ServerOptions{MaxHeader: 32 << 10, Connections: unlimited{}})
	f.Fuzz(func(t *testing.T, method, target, cookies string) {
		if strings.ContainsAny(method+target+cookies, "\r\n\x00") || strings.TrimSpace(method) != method ||
			strings.TrimSpace(target) != target || strings.Contains(target, internalPath) {
			return // the edge of a value is not part of it; and no question is about what Sluice answers itself
		}
		want := "malformed"
		raw := method + " " + target + " HTTP/1.1\r\nHost: shop\r\nCookie: " + cookies + "\r\n\r\n"
		if c, err := server.Read(raw, peer, p.limits(32<<10, false)); err == nil {
			c.State = &connState{shard: p.counters.Shard()}
			plain.Handle(c.Ctx())
			want = reasonIn(c)
		}
		for _, dialect := range []string{"nginx", "caddy", "envoy"} {
			if dialect == "envoy" && !strings.HasPrefix(target, "/") {
				continue // there is no such path behind the prefix
			}
			s := NewServer(p, ServerOptions{MaxHeader: 32 << 10, Connections: unlimited{},
				Decide: &Decide{Dialect: dialect, Peers: loopback}})
			c, err := server.Read(question(dialect, method, target, "shop", "Cookie: "+cookies+"\r\n"), peer,
				p.limits(32<<10, false))
			got := "malformed"
			if err == nil {
				c.State = &connState{shard: p.counters.Shard(), decides: s.decides}
				s.Handle(c.Ctx())
				if got = reasonIn(c); (got == "") != (c.Ctx().Response.StatusCode() == 200) {
					t.Fatalf("%q: %d for %q", target, c.Ctx().Response.StatusCode(), got)
				}
			}
			if got != want {
				t.Fatalf("%s, %s %q, Cookie %q: asked %q, forwarded %q", dialect, method, target, cookies, got, want)
			}
		}
	})
}

// reasonIn is the reason in the answer on c; "" = it is admitted.
func reasonIn(c *server.Conn) string {
	for line := range strings.Lines(string(c.Prepared().Fields)) {
		if reason, ok := strings.CutPrefix(line, "X-Sluice-Reason: "); ok {
			return strings.TrimSpace(reason)
		}
	}
	return ""
}
