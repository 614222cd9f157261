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

	"sluice/limiter"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/server"
	"sluice/upstream"
)

// Fakes of one line.
type (
	upstreamFunc func(*upstream.Request, *fasthttp.Response) upstream.Outcome
	windowFunc   func(now int64, sku []byte) (time.Duration, bool)
	slotFunc     func() reject.Reason
)

func (f upstreamFunc) Send(o *upstream.Request, r *fasthttp.Response) upstream.Outcome {
	return f(o, r)
}
func (f upstreamFunc) Upgrade(o *upstream.Request, r *fasthttp.Response) (net.Conn, upstream.Outcome) {
	return nil, f(o, r)
}
func (upstreamFunc) Acquire(*upstream.Request) bool                              { return true }
func (upstreamFunc) Release(*upstream.Request)                                   {}
func (f windowFunc) Acquire(now int64, sku []byte) (wait time.Duration, ok bool) { return f(now, sku) }
func (f windowFunc) Peek(int64, []byte) (wait time.Duration, full bool)          { return 0, false }
func (f slotFunc) Acquire(limiter.Client, bool) reject.Reason                    { return f() }
func (f slotFunc) TryAcquire() bool                                              { return false }
func (f slotFunc) Peek(bool) bool                                                { return false }
func (f slotFunc) Release(time.Duration)                                         {}

// unlimited are connection limits without a bound.
type unlimited struct{}

func (unlimited) Open(netip.Addr, bool) reject.Reason { return reject.Admitted }
func (unlimited) Close(netip.Addr, bool)              {}

// stockMap is a stock that the test sets.
type stockMap struct {
	mu      sync.Mutex
	closed  map[string]reject.Reason
	entered int
	left    int
}

func (s *stockMap) Closed(_ int64, sku []byte) reject.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed[string(sku)]
}

func (s *stockMap) Enter(_ int64, sku, _ []byte) reject.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered++
	return s.closed[string(sku)]
}

func (*stockMap) AwaitReading(int64, []byte, interface{ StepAside() }) (reject.Reason, bool) {
	return reject.Admitted, false
}

func (*stockMap) EnterAtOnce(int64, []byte, []byte) (reject.Reason, bool) {
	return reject.Admitted, false
}

func (s *stockMap) Leave([]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left++
}

// recorder is an upstream that keeps what it was sent.
type recorder struct {
	mu   sync.Mutex
	reqs []string // line, header lines and body as they would be written
}

func (s *recorder) Send(o *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
	var body []byte
	if o.HTTP.IsBodyStream() {
		body, _ = io.ReadAll(o.HTTP.BodyStream())
	} else {
		body = o.HTTP.Body()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reqs = append(s.reqs, string(o.AppendHead(nil, nil))+string(body))
	resp.SetBodyString("from the upstream")
	return upstream.Answered
}

func (s *recorder) Upgrade(o *upstream.Request, resp *fasthttp.Response) (net.Conn, upstream.Outcome) {
	return nil, s.Send(o, resp)
}

func (s *recorder) Acquire(*upstream.Request) bool { return true }
func (s *recorder) Release(*upstream.Request)      {}

func (s *recorder) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.reqs...)
}

var orderRoutes = []Route{
	{Name: "order", Match: "POST /api/seckill/{sku}/order", Gate: route.Check, SKU: "$path_sku", User: "$cookie_uid"},
	{Name: "search", Match: "/search/", Gate: route.Limit},
	{Name: "rest", Match: "/", Gate: route.Pass},
}

func options(to Upstream) Options {
	return Options{
		Routes: orderRoutes, RequestIDHeader: "X-Request-Id", MaxBody: 1 << 10, PassHost: true,
		Responses: reject.Options{
			Languages:    []string{"en", "zh-CN"},
			Origins:      []string{"https://shop", "https://shop.example"},
			EnvelopeBody: `{"code":$code,"msg":"$message","data":null}`,
			Answers: map[reject.Class]reject.Answer{
				reject.Busy:         {Status: 429, RetryAfter: time.Second, Code: 42900},
				reject.SoldOutClass: {Status: 409, Code: 40901}, reject.DuplicateClass: {Status: 409},
				reject.DeniedClass: {Status: 403}, reject.UnknownSKUClass: {Status: 404},
				reject.BadRequestClass:   {Status: 400, Code: 40000},
				reject.UnidentifiedClass: {Status: 401, Code: 40100},
				reject.Unavailable:       {Status: 503, RetryAfter: 3 * time.Second},
				reject.PausedClass:       {Status: 503},
				reject.EndedClass:        {Status: 403}, reject.NotStartedClass: {Status: 403},
			},
		},
		Upstream: to, Stock: &stockMap{closed: map[string]reject.Reason{}},
		Limiters: Limiters{
			Windows:     windowFunc(func(int64, []byte) (time.Duration, bool) { return 0, true }),
			Concurrency: slotFunc(func() reject.Reason { return reject.Admitted }),
		},
		Log: slog.New(slog.DiscardHandler),
	}
}

// gateway starts a Server on a real socket.
func gateway(t *testing.T, o Options) (addr string, p *Proxy) {
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
		o.Connections = unlimited{}
	}
	s = NewServer(p, o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(ln) }()
	t.Cleanup(func() { ln.Close(); s.Drain(t.Context()); <-served })
	return s, ln.Addr().String()
}

// talk sends raw bytes on a connection of their own and returns the first response.
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
		t.Fatalf("%q: no whole response: %v", raw, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: response cut short: %v", raw, err)
	}
	return resp, string(body)
}

// requested is a request that p would handle, on a connection that is not there.
func requested(t *testing.T, p *Proxy, raw string) *server.Conn {
	t.Helper()
	x, err := server.Read(raw, netip.MustParseAddr("203.0.113.9"), p.limits(16<<10, false))
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	x.State = &connState{shard: p.counters.Shard()}
	return x
}

// clientConn is a client's connection.
type clientConn struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

// connect opens a connection that lasts until the end of the test, or a minute.
func connect(t *testing.T, addr string) *clientConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return connOf(t, c)
}

func connOf(t *testing.T, c net.Conn) *clientConn {
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &clientConn{c, t, bufio.NewReader(c)}
}

func (c *clientConn) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads one whole response to a request of this method.
func (c *clientConn) receive(method string) (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("no whole response: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("response cut short: %v", err)
	}
	return resp, string(body)
}

// rest reads all until the other side has ended the connection.
func (c *clientConn) rest() string {
	c.t.Helper()
	all, err := io.ReadAll(c.in)
	if err != nil {
		c.t.Fatalf("the connection broke after %q: %v", all, err)
	}
	return string(all)
}
