package proxy

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/auth"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// repeater is a connection on which the same request arrives as often as it is asked for. It is not of TCP, so that a
// goroutine waits for it.
type repeater struct {
	raw      string
	came     int // bytes of the request under way
	left     int // requests that are still to arrive
	unread   int // answers that are still to come
	asked    chan int
	answered chan struct{}
	status   []byte // how the last answer must begin
	differs  bool   // the last answer began otherwise
}

func (c *repeater) Read(p []byte) (int, error) {
	if c.left == 0 {
		n, ok := <-c.asked
		if !ok {
			return 0, io.EOF
		}
		c.left, c.unread = n, n
	}
	n := copy(p, c.raw[c.came:])
	if c.came += n; c.came == len(c.raw) {
		c.came = 0
		c.left--
	}
	return n, nil
}

// Write is called once for each of these answers, which are short.
func (c *repeater) Write(p []byte) (int, error) {
	c.differs = !bytes.HasPrefix(p, c.status)
	if c.unread--; c.unread == 0 {
		c.answered <- struct{}{}
	}
	return len(p), nil
}

func (c *repeater) Close() error                   { return nil }
func (*repeater) LocalAddr() net.Addr              { return nil }
func (*repeater) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9)} }
func (*repeater) SetDeadline(time.Time) error      { return nil }
func (*repeater) SetReadDeadline(time.Time) error  { return nil }
func (*repeater) SetWriteDeadline(time.Time) error { return nil }

// connections is a listener of connections that are made here.
type connections struct {
	queue  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newConnections() *connections {
	return &connections{queue: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *connections) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *connections) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*connections) Addr() net.Addr { return &net.TCPAddr{} }

// repeat has p serve raw on a connection of its own. Each call of send is n requests, and returns when all are
// answered. The last answer must have this status.
func repeat(tb testing.TB, p *Proxy, raw, status string) (send func(n int)) {
	return repeatTo(tb, p, nil, raw, status)
}

// repeatTo is repeat, to a server that decides where decides is not nil.
func repeatTo(tb testing.TB, p *Proxy, decides *Decide, raw, status string) (send func(n int)) {
	c := &repeater{raw: raw, asked: make(chan int), answered: make(chan struct{}), status: []byte("HTTP/1.1 " + status)}
	s := NewServer(p, ServerOptions{MaxHeader: 16 << 10, Connections: unlimited{}, Decide: decides,
		Log: slog.New(slog.DiscardHandler)})
	l, ended := newConnections(), make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	l.queue <- c
	tb.Cleanup(func() {
		l.Close()
		<-ended
		close(c.asked)
		s.Drain(tb.Context())
		if c.differs {
			tb.Errorf("the last answer did not begin with %q", c.status)
		}
	})
	return func(n int) {
		c.asked <- n
		<-c.answered
	}
}

const browserOrder = "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\r\nAccept: application/json, text/plain, */*\r\n" +
	"Accept-Language: zh-CN,zh;q=0.9,en;q=0.8\r\nAccept-Encoding: gzip, deflate\r\nOrigin: https://shop.example\r\n" +
	"Referer: https://shop.example/1001\r\nContent-Type: application/json\r\nContent-Length: 2\r\n" +
	"Cookie: theme=dark; uid=7; _ga=GA1.1.123456789\r\nConnection: keep-alive\r\n\r\n{}"

func soldOutSKU(o *Options) { o.Stock.(*stockMap).closed["1001"] = reject.SoldOut }

// fixedOrders is a stock ledger that says the same of every order.
type fixedOrders struct {
	decided     bool // from memory
	reservation Reservation
}

func (f fixedOrders) Decided(int64, ledger.Order) (Reservation, bool) {
	return f.reservation, f.decided
}
func (f fixedOrders) LookUp(int64, ledger.Order) (Reservation, bool) {
	return f.reservation, f.decided
}
func (f fixedOrders) Reserve(int64, ledger.Order) Reservation         { return f.reservation }
func (fixedOrders) Settle(ledger.Order, string, metrics.OrderOutcome) {}
func (fixedOrders) State(int64, []byte, []byte) (OrderState, reject.Reason) {
	return OrderState{}, reject.Admitted
}

// oneRoute is the options' only route.
func (o *Options) oneRoute(rt Route) { o.Routes = []Route{rt} }

// manyNetworks are n networks in which no address of the tests is.
func manyNetworks(n int) (all []netip.Prefix) {
	for i := range n {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(i >> 8), byte(i), 0}), 24))
	}
	return all
}

// paths are the ways of one order through the checks that do not wait.
var paths = []struct {
	name   string
	status string
	set    func(*Options)
}{
	{"admitted", "200", func(*Options) {}},
	{"reserved", "200", func(o *Options) {
		o.oneRoute(reserveRoute)
		o.Orders = fixedOrders{reservation: Reservation{Serial: "s-1", Deadline: 4_102_444_800_123}}
		o.SigningKey, o.Outcomes = []byte(proofSecret), OutcomeRules{ConfirmOn: []string{"2xx"}}
	}},
	{"sold_out", "409", soldOutSKU},
	{"sold_out_page", "409", func(o *Options) { soldOutSKU(o); o.Responses.Format = reject.HTML }},
	{"sold_out_envelope", "200", func(o *Options) { soldOutSKU(o); o.Responses.Format = reject.Envelope }},
	{"reserve_sold_out", "409", func(o *Options) {
		o.oneRoute(reserveRoute)
		o.Orders = fixedOrders{decided: true, reservation: Reservation{Reason: reject.SoldOut}}
	}},
	{"reserve_in_progress", "409", func(o *Options) {
		o.oneRoute(reserveRoute)
		o.Orders = fixedOrders{decided: true, reservation: Reservation{Reason: reject.InProgress}}
	}},
	{"window", "429", func(o *Options) {
		o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { return time.Millisecond, false })
	}},
	{"concurrency", "429", func(o *Options) {
		o.Concurrency = slotFunc(func() reject.Reason { return reject.Concurrency })
	}},
	{"no_route", "404", func(o *Options) { o.Routes = o.Routes[1:2] }},
	{"bad_request", "400", func(o *Options) {
		o.oneRoute(Route{Name: "x", Match: "/", Gate: route.Check, SKU: "$arg_sku"})
	}},
	{"rate_admitted", "200", func(o *Options) {
		o.Rates = []Rate{keyedRate("a", "$remote_addr$path_sku", 1<<20), keyedRate("b", "$cookie_uid", 1<<20)}
	}},
	{"rate_rejected", "429", func(o *Options) { o.Rates = []Rate{keyedRate("a", "$remote_addr", 1)} }},
	{"rate_fields", "200", func(o *Options) {
		o.Rates = []Rate{keyedRate("a", "$remote_addr", 1<<20), keyedRate("b", "$cookie_uid", 1<<20)}
		o.Responses.RateFields = true
	}},
	{"hundred_routes", "409", func(o *Options) {
		soldOutSKU(o)
		for i := range 100 {
			rt := Route{Name: fmt.Sprint("x", i), Match: fmt.Sprintf("/api/seckill-%d/{sku}/order", i), Gate: route.Check,
				SKU: "$path_sku"}
			o.Routes = append([]Route{rt}, o.Routes...)
		}
	}},
	{"not_listed", "200", func(o *Options) { o.Deny, o.Bypass = manyNetworks(5000), manyNetworks(5000) }},
	{"denied", "403", func(o *Options) {
		o.Deny = append(manyNetworks(5000), netip.MustParsePrefix("203.0.113.0/24"))
	}},
	{"proven_sold_out", "409", func(o *Options) {
		soldOutSKU(o)
		o.oneRoute(checkRoute("$jwt_sub"))
		o.Auth = byJWT("$cookie_token")
	}},
	{"unidentified", "401", func(o *Options) {
		o.oneRoute(checkRoute("$signed_uid"))
		o.Auth = auth.VerifierOptions{CookieKey: proofSecret}
	}},
	{"order_token", "403", func(o *Options) {
		rt := checkRoute("$cookie_uid")
		rt.OrderToken = true
		o.oneRoute(rt)
		o.Auth = auth.VerifierOptions{OrderTokenKey: proofSecret, Slot: time.Minute}
	}},
	{"json", "400", func(o *Options) {
		o.oneRoute(Route{Name: "x", Match: "/", Gate: route.Check, SKU: "$json_sku"})
	}},
	{"closed_schedule", "403", func(o *Options) { o.Schedule = startsIn(time.Minute) }},
	{"observed", "200", func(o *Options) { soldOutSKU(o); o.Observe = true }},
}

var reserveRoute = Route{Name: "x", Match: "/api/seckill/{sku}/order", Gate: route.Reserve, SKU: "$path_sku",
	User: "$cookie_uid"}

func checkRoute(user string) Route {
	return Route{Name: "x", Match: "/api/seckill/{sku}/order", Gate: route.Check, SKU: "$path_sku", User: user}
}

// startsIn is a schedule on which every sale begins after so long.
type startsIn time.Duration

func (d startsIn) Closed(int64, []byte, bool) (reject.Reason, time.Duration) {
	return reject.NotStarted, time.Duration(d)
}

// answerAtOnce is an upstream that costs nothing.
func answerAtOnce(_ *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
	resp.SetStatusCode(200)
	return upstream.Answered
}

func pathProxy(tb testing.TB, set func(*Options)) *Proxy {
	tb.Helper()
	o := options(upstreamFunc(answerAtOnce))
	set(&o)
	p, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// tokenOrder is browserOrder of a user with a token, too.
var tokenOrder = strings.Replace(browserOrder, "uid=7", "uid=7; token="+tokenOf("7"), 1)

// From the first byte of the head to the last of the answer, in the server too.
func TestHandle_DoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			send := repeat(t, pathProxy(t, path.set), tokenOrder, path.status)
			send(10)
			if n := testing.AllocsPerRun(200, func() { send(1) }); n != 0 {
				t.Errorf("%v allocations a request", n)
			}
		})
	}
}

func BenchmarkHandle(b *testing.B) {
	for _, path := range paths {
		b.Run(path.name, func(b *testing.B) {
			send := repeat(b, pathProxy(b, path.set), tokenOrder, path.status)
			send(10)
			b.ReportAllocs()
			b.ResetTimer()
			send(b.N)
		})
	}
}

// asks has p asked about tokenOrder as often, or about a page.
func asks(tb testing.TB, p *Proxy, dialect, method, target, status string) (send func(n int)) {
	_, fields, _ := strings.Cut(strings.TrimSuffix(tokenOrder, "\r\n\r\n{}"), "Host: shop.example\r\n")
	fields = strings.Replace(fields, "Content-Length: 2\r\n", "", 1) + "\r\n"
	raw := strings.Replace(question(dialect, method, target, "shop.example", fields), "192.0.2.1", "203.0.113.9", 1)
	raw = strings.Replace(raw, "HTTP/1.0", "HTTP/1.1", 1) // nginx keeps the connection, as configured
	return repeatTo(tb, p, &Decide{Dialect: dialect, Peers: prefixes("203.0.113.9/32")}, raw, status)
}

// askedStatus is the status by which a question is answered that is about a request on a path.
func askedStatus(dialect, path, status string) string {
	switch {
	case path == "admitted", path == "reserved":
		return status
	case dialects[dialect].only403, status == "200":
		return "403"
	}
	return status
}

// A decision costs what a rejection costs, and allocates nothing. What is held is remembered; so these paths hold
// nothing.
func TestDecide_DoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for dialect := range dialects {
		for _, path := range paths {
			if path.status == "200" && path.name != "sold_out_envelope" {
				continue
			}
			t.Run(dialect+" "+path.name, func(t *testing.T) {
				status := askedStatus(dialect, path.name, path.status)
				send := asks(t, pathProxy(t, path.set), dialect, "POST", "/api/seckill/1001/order", status)
				send(10)
				if n := testing.AllocsPerRun(200, func() { send(1) }); n != 0 {
					t.Errorf("%v allocations a rejection", n)
				}
			})
		}
		send := asks(t, pathProxy(t, func(*Options) {}), dialect, "GET", "/page", "200")
		send(10)
		if n := testing.AllocsPerRun(200, func() { send(1) }); n != 0 {
			t.Errorf("%s: %v allocations an admission", dialect, n)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, dialect := range []string{"caddy", "nginx"} {
		for _, path := range paths {
			if path.name != "admitted" && path.name != "reserved" && path.name != "sold_out" && path.name != "rate_rejected" {
				continue
			}
			b.Run(dialect+"/"+path.name, func(b *testing.B) {
				status := askedStatus(dialect, path.name, path.status)
				send := asks(b, pathProxy(b, path.set), dialect, "POST", "/api/seckill/1001/order", status)
				send(10)
				b.ReportAllocs()
				b.ResetTimer()
				send(b.N)
			})
		}
	}
}
