package proxy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"sluice/internal/testkit"
	"sluice/limiter"
	"sluice/proxy/metrics"
	"sluice/proxy/param/paramtest"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/server"
	"sluice/stockgate/ledger"
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
			{"POST", "/api/seckill/1002/order", "", "unidentified"},
			{"POST", "/api/seckill/10%2002/order", "Cookie: uid=7\r\n", "bad_request"},
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
				resp, body = talk(t, addr, "GET /rejection HTTP/1.1\r\nHost: shop\r\n"+rejectionHeader+": "+
					resp.Header.Get(rejectionHeader)+"\r\n"+c.fields+"\r\n")
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
			"POST /settle HTTP/1.1\r\nHost: shop\r\nSluice-Serial: s-1\r\nSluice-Sku: 1001\r\nSluice-Status: 200\r\n\r\n",
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
	behind := strings.Replace(denied, "198.51.100.7", "198.51.100.7, 127.0.0.1", 1) // the address of who asks
	if resp, _ := talk(t, addr, behind); resp.Header.Get("X-Sluice-Reason") != "denied_ip" {
		t.Errorf("the proxy that asks is taken for its client: %v", resp.Header)
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
	deadline int64 // 0 = in 2100
	mu       sync.Mutex
	reserved int
	settled  []string
	state    ledger.Status
}

func (s *settledOrders) Decided(int64, ledger.Order) (Reservation, bool) {
	return Reservation{}, false
}

func (s *settledOrders) Reserve(_ int64, o ledger.Order) Reservation {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved++
	serial := string(o.Key)
	if serial == "" {
		serial = fmt.Sprintf("s-%d", s.reserved)
	}
	return Reservation{Serial: serial, Deadline: cmp.Or(s.deadline, 4_102_444_800_123)}
}

func (s *settledOrders) Settle(o ledger.Order, serial string, outcome metrics.OrderOutcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, fmt.Sprintf("%s %s %s", o.SKU, serial, outcome))
}

func (s *settledOrders) State(_ int64, sku, _ []byte) (OrderState, reject.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return OrderState{SKU: string(sku), State: s.state}, reject.Admitted
}

func (s *settledOrders) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.settled...)
}

func (s *settledOrders) become(state ledger.Status) {
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
	o.Outcomes = OutcomeRules{ConfirmOn: []string{"2xx"}, ReleaseOn: []string{"4xx"}}
	addr, _ = decider(t, o, "haproxy")
	return addr, seen
}

// settle tells what became of an order; sku "" = of a request that reserved nothing.
func settle(t *testing.T, addr, sku, serial, status, fields string) (code int, state string) {
	t.Helper()
	if sku != "" {
		fields += "Sluice-Sku: " + sku + "\r\n"
	}
	resp, body := talk(t, addr, "POST /settle HTTP/1.1\r\nHost: sluice\r\nSluice-Serial: "+serial+"\r\nSluice-Status: "+
		status+"\r\n"+fields+"\r\n")
	var said struct{ State string }
	_ = json.Unmarshal([]byte(body), &said) // a rejection has none
	return resp.StatusCode, said.State
}

// A process that was stopped for longer than the units are held must not have the proxy forward the order.
func TestDecide_OrderThatIsHeldNoMoreIsRejected(t *testing.T) {
	addr, seen := settling(t, time.Hour)
	seen.deadline = 1
	resp, body := talk(t, addr, question("haproxy", "POST", "/api/seckill/1001/order", "shop", "Cookie: uid=7\r\n"))
	if resp.StatusCode == 200 || !strings.Contains(body, "upstream_busy") {
		t.Errorf("%d %s, want upstream_busy", resp.StatusCode, body)
	}
	if got := seen.calls(); len(got) != 1 || got[0] != "1001 s-1 released" {
		t.Errorf("%q, want it released", got)
	}
}

func TestDecide_AdmittedOrderIsSettledByACall(t *testing.T) {
	addr, seen := settling(t, time.Hour)
	admit := func() string {
		resp, body := talk(t, addr, question("haproxy", "POST", "/api/seckill/1001/order", "shop", "Cookie: uid=7\r\n"))
		serial := resp.Header.Get("Sluice-Serial")
		if resp.StatusCode != 200 || serial == "" || resp.Header.Get("Idempotency-Key") != serial ||
			resp.Header.Get("Sluice-Sku") != "1001" || resp.Header.Get("Sluice-Deadline") != "4102444800123" {
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
		{"009", "", "held", "unknown"}, {"000", "", "held", "unknown"}, {"-", "", "held", "unknown"},
		{"", "", "held", "unknown"}, {"0", "Sluice-Order: confirmed\r\n", "sold", "confirmed"},
	} {
		serial := admit()
		seen.become(ledger.StatusNone)
		for i := range 2 { // the second time changes nothing
			if code, state := settle(t, addr, "1001", serial, c.status, c.fields); code != 200 || state != c.state {
				t.Errorf("%s, call %d: %d %s, want 200 %s", c.status, i+1, code, state, c.state)
			}
		}
		if got := seen.calls(); len(got) != 1 || got[0] != "1001 "+serial+" "+c.outcome {
			t.Errorf("%s: %q", c.status, got)
		}
	}
	serial := admit()
	settle(t, addr, "1001", serial, "201", "")
	if code, state := settle(t, addr, "1001", serial, "409", ""); code != 409 || state != "sold" {
		t.Errorf("another outcome: %d %s", code, state)
	}
	serial = admit()
	settle(t, addr, "1001", serial, "502", "")
	if code, state := settle(t, addr, "1001", serial, "201", ""); code != 200 || state != "sold" {
		t.Errorf("an outcome after none: %d %s", code, state)
	}
}

func TestDecide_SettlesOrdersThatAreNotOpenByTheLedger(t *testing.T) {
	addr, seen := settling(t, time.Hour)
	for _, c := range []struct {
		state   ledger.Status
		status  string
		code    int
		becomes string
		calls   int
	}{
		{ledger.StatusNone, "201", 404, "none", 0}, {ledger.StatusHeld, "201", 200, "sold", 1},
		{ledger.StatusHeld, "404", 200, "released", 1},
		{ledger.StatusSold, "201", 200, "sold", 0}, {ledger.StatusSold, "409", 409, "sold", 0},
		{ledger.StatusReleased, "201", 409, "released", 0}, {ledger.StatusReleased, "500", 200, "released", 0},
	} {
		seen.become(c.state)
		if code, state := settle(t, addr, "1001", "s-9", c.status, ""); code != c.code || state != c.becomes ||
			len(seen.calls()) != c.calls {
			t.Errorf("%s, told %s: %d %s %q", c.state, c.status, code, state, seen.calls())
		}
	}
	seen.become(ledger.StatusHeld)
	if code, state := settle(t, addr, "", "s-9", "201", ""); code != 404 || state != "none" || len(seen.calls()) > 0 {
		t.Errorf("an order of any SKU was settled: %d %s %q", code, state, seen.calls())
	}
}

// What is told stands in fields, each of them once: no value of a client could be read as two.
func TestDecide_SettlementIsReadInOneWay(t *testing.T) {
	addr, seen := settling(t, time.Hour)
	seen.become(ledger.StatusHeld)
	const whole = "POST /settle HTTP/1.1\r\nHost: sluice\r\nSluice-Serial: s-9\r\nSluice-Sku: 1001\r\n" +
		"Sluice-Status: 201\r\nSluice-Order: confirmed\r\n"
	for _, c := range []struct{ from, to, says string }{
		{"Serial: s-9", "Serial: ", "Sluice-Serial"}, {"Serial: s-9", "Serial: a b", "Sluice-Serial"},
		{"Sluice-Serial: s-9\r\n", "", "Sluice-Serial"}, {"Status: 201", "Status: abc", "Sluice-Status"},
		{"Status: 201", "Status: 1000", "Sluice-Status"}, {"Sku: 1001", "Sku: a{b}", "Sluice-Sku"},
		{"Sluice-Serial: s-9", "Sluice-Serial: s-9\r\nsluice-serial: s-9", "Sluice-Serial"},
		{"Sluice-Sku: 1001", "Sluice-Sku: 1001\r\nsluice-sku: 1001", "Sluice-Sku"},
		{"Sluice-Status: 201", "Sluice-Status: 201\r\nsluice-status: 201", "Sluice-Status"},
		{"Sluice-Order: confirmed", "Sluice-Order: confirmed\r\nsluice-order: released", "Sluice-Order"},
		{"/settle ", "/settle?serial=s-9&status=201 ", "query"}, {"POST", "GET", ""},
	} {
		raw := strings.Replace(whole, c.from, c.to, 1)
		if resp, body := talk(t, addr, raw+"\r\n"); resp.StatusCode != 400 || !strings.Contains(body, c.says) {
			t.Errorf("%q: %d %s", raw, resp.StatusCode, body)
		}
	}
	if calls := seen.calls(); len(calls) > 0 {
		t.Errorf("settled: %q", calls)
	}
	const key = "x&status=400"
	talk(t, addr, question("haproxy", "POST", "/api/seckill/1001/order", "shop", "Cookie: uid=7\r\nIdempotency-Key: "+key+
		"\r\n"))
	if code, state := settle(t, addr, "1001", key, "201", ""); code != 200 || state != "sold" {
		t.Errorf("%q: %d %s", key, code, state)
	}
}

// A serial is the client's own key, which is unique in its SKU alone.
func TestDecide_OrdersOfTwoSKUsMayHaveOneSerial(t *testing.T) {
	addr, seen := settling(t, time.Hour)
	for _, sku := range []string{"1001", "1002"} {
		resp, body := talk(t, addr, question("haproxy", "POST", "/api/seckill/"+sku+"/order", "shop",
			"Cookie: uid=7\r\nIdempotency-Key: mine\r\n"))
		if resp.StatusCode != 200 || resp.Header.Get("Sluice-Serial") != "mine" {
			t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, body)
		}
	}
	if code, _ := settle(t, addr, "", "mine", "409", ""); code != 404 || len(seen.calls()) > 0 {
		t.Errorf("without a SKU: %d %q", code, seen.calls())
	}
	if code, state := settle(t, addr, "1002", "mine", "409", ""); code != 200 || state != "released" {
		t.Errorf("1002: %d %s", code, state)
	}
	if code, state := settle(t, addr, "1001", "mine", "201", ""); code != 200 || state != "sold" {
		t.Errorf("1001: %d %s", code, state)
	}
	if got := strings.Join(seen.calls(), ", "); got != "1002 mine released, 1001 mine confirmed" {
		t.Error(got)
	}
}

// The ledger may admit a key again whose order it has ended. The slot of the earlier request is not lost.
func TestDecide_KeyThatComesAgainHoldsOneSlot(t *testing.T) {
	slots := &singleSlot{slotFunc: func() reject.Reason { return reject.Admitted }}
	o := options(&recorder{})
	o.Orders, o.Routes, o.SettleWithin, o.Concurrency = &settledOrders{}, []Route{reserveRoute}, time.Hour, slots
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s, addr := serveWith(t, p, ServerOptions{Decide: &Decide{Dialect: "caddy", Peers: loopback}})
	ask := question("caddy", "POST", "/api/seckill/1001/order", "shop", "Cookie: uid=7\r\nIdempotency-Key: mine\r\n")
	for range 3 {
		if resp, body := talk(t, addr, ask); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	if open := openDecisions(t, s); open != 1 || slots.taken() != 1 {
		t.Errorf("%v are open, %d slots are taken", open, slots.taken())
	}
	for range 2 {
		settle(t, addr, "1001", "mine", "", "")
		if open := openDecisions(t, s); open != 0 || slots.taken() != 0 {
			t.Errorf("told: %v are open, %d slots are taken", open, slots.taken())
		}
	}
}

// openDecisions is sluice_decisions_open.
func openDecisions(t *testing.T, s *Server) float64 {
	t.Helper()
	ch := make(chan prometheus.Metric, 8)
	s.open.collect(ch)
	var m dto.Metric
	if err := (<-ch).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

// One order may be told of from several places at once.
func TestDecide_CallsAtOnceAgree(t *testing.T) {
	addr, seen := settling(t, time.Hour)
	for range 8 {
		resp, _ := talk(t, addr, question("haproxy", "POST", "/api/seckill/1001/order", "shop", "Cookie: uid=7\r\n"))
		serial := resp.Header.Get("Sluice-Serial")
		seen.become(ledger.StatusNone)
		var calls sync.WaitGroup
		for _, status := range []string{"500", "201", "", "201"} {
			calls.Go(func() {
				if code, _ := settle(t, addr, "1001", serial, status, ""); code != 200 {
					t.Errorf("%q: %d", status, code)
				}
			})
		}
		calls.Wait()
		if got := seen.calls(); !slices.Contains(got, "1001 "+serial+" confirmed") {
			t.Errorf("%q", got)
		}
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

func (s *singleSlot) Acquire(limiter.Client, bool) reject.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason := s.slotFunc()
	if reason == reject.Admitted {
		s.used++
	}
	return reason
}

func (s *singleSlot) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
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
			if code, state := settle(t, addr, "", serial, "009", ""); code != 200 || state != "ended" {
				t.Errorf("%d %s", code, state)
			}
			if code, _ := settle(t, addr, "", serial, "200", ""); code != 404 {
				t.Errorf("a slot was given back twice: %d", code)
			}
		}
		testkit.Eventually(t, "the slot is free", func() bool {
			resp, _ := talk(t, addr, ask)
			return resp.StatusCode == 200
		})
	}
}

// A server behind the proxy that asks may fold "_" and "-", and would take the field for one of Sluice or the proxy.
func TestDecide_FieldsThatImitateAnotherAreAmbiguous(t *testing.T) {
	o := options(&recorder{})
	o.ClientHeader = "X-Forwarded-For"
	for dialect := range dialects {
		addr, _ := decider(t, o, dialect)
		for _, name := range []string{"Sluice_Sku", "SLUICE_SIGNATURE", "sluice.serial", "Sluice-Order_x", "Idempotency_Key",
			"X_Forwarded_For", "x-forwarded_uri", "X_FORWARDED-PROTO", "SCRIPT_NAME", "X_Real_IP", "True_Client-IP",
			"X-Forwarded-Prefix", "x_forwarded_prefix"} {
			resp, body := talk(t, addr, question(dialect, "GET", "/page", "shop", name+": x\r\n"))
			status := fmt.Sprint(resp.StatusCode)
			if dialects[dialect].only403 {
				status = resp.Header.Get(statusHeader)
			}
			if status != "400" || resp.Header.Get("X-Sluice-Reason") != "ambiguous" {
				t.Errorf("%s, %s: %d %v %s", dialect, name, resp.StatusCode, resp.Header, body)
			}
			if said, ok := decodeRejection([]byte(resp.Header.Get(rejectionHeader))); dialects[dialect].only403 && (!ok ||
				said.Reason != reject.Ambiguous) {
				t.Errorf("%s, %s: /rejection would not answer: %v", dialect, name, resp.Header)
			}
		}
		for _, name := range []string{"X-Real-IP", "Idempotency-Key", "Sluice-Sku", "User_Agent", "_", "X_Own"} {
			if resp, body := talk(t, addr, question(dialect, "GET", "/page", "shop", name+": x\r\n")); resp.StatusCode != 200 {
				t.Errorf("%s, %s: %d %s", dialect, name, resp.StatusCode, body)
			}
		}
	}
}

// No browser sends a preflight with a body, a type or a key. A question tells of a body by its type or its framing.
func TestDecide_PreflightHasNoBody(t *testing.T) {
	o := options(&recorder{})
	o.Concurrency = slotFunc(func() reject.Reason { return reject.Concurrency })
	addr, _ := decider(t, o, "caddy")
	const preflight = "Origin: https://shop\r\nAccess-Control-Request-Method: POST\r\n"
	for fields, reason := range map[string]string{
		preflight: "", "Origin: https://shop\r\n": "concurrency",
		preflight + "Content-Type: application/json\r\n": "concurrency",
		preflight + "Idempotency-Key: mine\r\n":          "concurrency",
		preflight + "Content-Length: 0\r\n":              "", preflight + "Transfer-Encoding: chunked\r\n": "concurrency",
	} {
		raw := question("caddy", "OPTIONS", "/search/", "shop", fields)
		if strings.Contains(fields, "chunked") {
			raw += "2\r\nhi\r\n0\r\n\r\n"
		}
		resp, body := talk(t, addr, raw)
		if resp.Header.Get("X-Sluice-Reason") != reason {
			t.Errorf("%q: %d %v %s", fields, resp.StatusCode, resp.Header, body)
		}
	}
}

// Traefik drops a field of the request that the answer does not have, and Caddy takes it for a reservation.
func TestDecide_ClientsKeyIsKeptWhereNothingIsReserved(t *testing.T) {
	for dialect := range dialects {
		addr, _ := decider(t, options(&recorder{}), dialect)
		resp, _ := talk(t, addr, question(dialect, "GET", "/page", "shop", "Idempotency-Key: mine\r\n"))
		if has := resp.Header.Get("Idempotency-Key") == "mine"; resp.StatusCode != 200 || has != (dialect == "traefik") {
			t.Errorf("%s: %d %v", dialect, resp.StatusCode, resp.Header)
		}
	}
}

// Envoy answers a bare 403 for any 5xx that it is answered with.
func TestDecide_EnvoyIsAnsweredNo5xx(t *testing.T) {
	o := options(&recorder{})
	o.Stock.(*stockMap).closed["1001"] = reject.Paused
	addr, _ := decider(t, o, "envoy")
	resp, body := talk(t, addr, question("envoy", "POST", "/api/seckill/1001/order", "shop", "Cookie: uid=7\r\n"))
	if resp.StatusCode != 403 || resp.Header.Get(statusHeader) != "503" || !strings.Contains(body, "paused") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
}

// Where the answer panics the rejection is one for the proxy, too, and nothing stays taken.
func TestDecide_PanicAdmitsNothing(t *testing.T) {
	for dialect := range dialects {
		var now, breaks atomic.Int64
		o := options(&recorder{})
		o.Responses.Format = reject.Envelope // whose status is 200
		slots := &singleSlot{slotFunc: func() reject.Reason { breaks.Store(1); return reject.Admitted }, used: 1}
		o.Concurrency = slots
		o.Now = func() int64 {
			if breaks.CompareAndSwap(1, 0) {
				panic("the clock breaks")
			}
			return now.Add(1)
		}
		addr, _ := decider(t, o, dialect)
		resp, _ := talk(t, addr, question(dialect, "GET", "/search/", "shop", ""))
		if resp.StatusCode != 403 || resp.Header.Get(serialHeader) != "" ||
			resp.Header.Get("X-Sluice-Reason") != "internal" || slots.taken() != 1 {
			t.Errorf("%s: %d %v, %d slots are taken", dialect, resp.StatusCode, resp.Header, slots.taken())
		}
	}
}

// What two readers could read differently is decided in a question as in a request that is forwarded.
func FuzzQuestions(f *testing.F) {
	for _, row := range paramtest.Readings {
		if row.Kind == paramtest.Target || row.Kind == paramtest.Slash {
			f.Add("POST", row.Input, "user_id=7")
			f.Add("POST", strings.Replace(row.Input, "/order/7", "/slash/7", 1), "user_id=7")
		}
		if row.Kind == paramtest.CookieName {
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
			if got := askedReason(t, p, dialect, method, target, "Cookie: "+cookies+"\r\n"); got != want {
				t.Fatalf("%s, %s %q, Cookie %q: asked %q, forwarded %q", dialect, method, target, cookies, got, want)
			}
		}
	})
}

// askedReason is the reason for which p rejects a request that it is asked about; "" = it is admitted.
func askedReason(t *testing.T, p *Proxy, dialect, method, target, fields string) string {
	s := NewServer(p, ServerOptions{MaxHeader: 32 << 10, Connections: unlimited{},
		Decide: &Decide{Dialect: dialect, Peers: loopback}})
	c, err := server.Read(question(dialect, method, target, "shop", fields), netip.MustParseAddr("127.0.0.1"),
		p.limits(32<<10, false))
	if err != nil {
		return "malformed"
	}
	c.State = &connState{shard: p.counters.Shard(), decides: s.decides}
	s.Handle(c.Ctx())
	reason := reasonIn(c)
	if (reason == "") != (c.Ctx().Response.StatusCode() == 200) {
		t.Fatalf("%q: %d for %q", target, c.Ctx().Response.StatusCode(), reason)
	}
	return reason
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
