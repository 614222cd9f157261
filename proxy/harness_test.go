package proxy

import (
	"bufio"
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

	"sluice/proxy/http1"
)

// Fakes of one line.
type (
	shopFunc    func(*Outgoing, *fasthttp.Response) Outcome
	windowsFunc func(now int64, sku []byte) (time.Duration, bool)
	placesFunc  func() Reason
)

func (f shopFunc) Send(o *Outgoing, r *fasthttp.Response) Outcome { return f(o, r) }
func (f shopFunc) Upgrade(o *Outgoing, r *fasthttp.Response) (net.Conn, Outcome) {
	return nil, f(o, r)
}
func (f windowsFunc) Take(now int64, sku []byte) (wait time.Duration, took bool) { return f(now, sku) }
func (f windowsFunc) Full(int64, []byte) (wait time.Duration, full bool)         { return 0, false }
func (f placesFunc) Enter(Client) Reason                                         { return f() }
func (f placesFunc) Leave(time.Duration)                                         {}

type anyNumber struct{}

func (anyNumber) Open(netip.Addr, bool) Reason { return Admitted }
func (anyNumber) Close(netip.Addr, bool)       {}

// shelf is a stock that the test sets.
type shelf struct {
	mu      sync.Mutex
	closed  map[string]Reason
	entered int
	left    int
}

func (s *shelf) Closed(_ int64, sku []byte) Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed[string(sku)]
}

func (s *shelf) Enter(_ int64, sku, _ []byte) Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered++
	return s.closed[string(sku)]
}

func (s *shelf) Known(int64, []byte, []byte) bool { return true }

func (s *shelf) Leave([]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left++
}

// seen is what the fake shop was sent.
type seen struct {
	mu   sync.Mutex
	reqs []string // line, host, fields, body as they would be written
}

func (s *seen) Send(o *Outgoing, resp *fasthttp.Response) Outcome {
	body := o.Body
	if o.BodyStream != nil {
		body, _ = io.ReadAll(o.BodyStream)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reqs = append(s.reqs, string(o.Line)+"Host: "+string(o.Host)+"\r\n"+string(o.Fields)+"\r\n"+string(body))
	resp.SetBodyString("from the shop")
	return Answered
}

func (s *seen) Upgrade(o *Outgoing, resp *fasthttp.Response) (net.Conn, Outcome) {
	return nil, s.Send(o, resp)
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.reqs...)
}

var orderRoutes = []Route{
	{Name: "order", Match: "POST /api/seckill/{sku}/order", Gate: Check, SKU: "$path_sku", User: "$cookie_uid"},
	{Name: "search", Match: "/search/", Gate: Limit},
	{Name: "rest", Match: "/", Gate: Pass},
}

func options(shop Shop) Options {
	return Options{
		Routes: orderRoutes, RequestIDHeader: "X-Request-Id", MaxBody: 1 << 10, PassHost: true,
		Responses: Responses{
			Languages: []string{"en", "zh-CN"}, ReasonHeader: "X-Sluice-Reason", CORS: true,
			EnvelopeBody: `{"code":$code,"msg":"$message","data":null}`,
			Answers: map[Class]Answer{
				Busy: {Status: 429, RetryAfter: time.Second, Code: 42900}, SoldOutClass: {Status: 409, Code: 40901},
				DuplicateClass: {Status: 409}, DeniedClass: {Status: 403}, UnknownSKUClass: {Status: 404}, BadRequestClass: {Status: 400, Code: 40000},
				Unavailable: {Status: 503, RetryAfter: 3 * time.Second}, PausedClass: {Status: 503}, EndedClass: {Status: 403}, NotStartedClass: {Status: 403},
			},
		},
		Shop: shop, Stock: &shelf{closed: map[string]Reason{}},
		Windows: windowsFunc(func(int64, []byte) (time.Duration, bool) { return 0, true }),
		Places:  placesFunc(func() Reason { return Admitted }),
		Log:     slog.New(slog.DiscardHandler),
	}
}

// gate starts a Server on a real socket.
func gate(t *testing.T, o Options) (addr string, p *Proxy) {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, p, ServerOptions{}), p
}

func serve(t *testing.T, p *Proxy, o ServerOptions) string {
	t.Helper()
	_, addr := serveWith(t, p, o)
	return addr
}

func serveWith(t *testing.T, p *Proxy, o ServerOptions) (s *Server, addr string) {
	t.Helper()
	o.MaxHeader, o.Log = 16<<10, slog.New(slog.DiscardHandler)
	if o.Connections == nil {
		o.Connections = anyNumber{}
	}
	s = NewServer(p, o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	t.Cleanup(func() { s.end(t) })
	return s, ln.Addr().String()
}

// end is a drain when nobody is coming any more: else it would listen for a while first, in hundreds of tests.
func (s *Server) end(t *testing.T) {
	s.mu.Lock()
	for _, ln := range s.listeners {
		ln.Close()
	}
	s.mu.Unlock()
	s.Drain(t.Context())
}

// kindNamed finds a rule of the wire by its name.
func kindNamed(name string) http1.Kind {
	for k := range http1.NumKinds {
		if k.String() == name {
			return k
		}
	}
	panic("no rule " + name)
}

// say sends raw bytes on a connection of their own and returns the answers and all that follows until the end.
func talk(t *testing.T, addr, raw string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: no whole answer: %v", raw, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: answer cut short: %v", raw, err)
	}
	return resp, string(body)
}

// requested is a request that p has read, from a connection that is not there.
func requested(t *testing.T, p *Proxy, raw string) *exchange {
	t.Helper()
	c := &Conn{Conn: script{strings.NewReader(raw)}, server: &Server{}, peer: netip.MustParseAddr("203.0.113.9"), shard: p.counts.shard()}
	c.reader = http1.NewGuard(http1.Limits{Header: 16 << 10, Target: maxTarget}).NewReader(socket{c})
	x := newExchange()
	x.conn = c
	if err := c.readHead(&x.asked); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return x
}
