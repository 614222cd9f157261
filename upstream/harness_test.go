package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// fasthttp keeps the date in a goroutine of its own, from the first header that it writes on.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// What many responses begin with.
const (
	status200   = "HTTP/1.1 200 OK\r\n"
	chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// rawServer is an upstream on a real socket that writes exactly the bytes it is told to, and counts every request that
// reached it, by the target in its request line.
type rawServer struct {
	net.Listener
	mu    sync.Mutex
	seen  map[string]int // request target: how often
	conns []net.Conn
	all   sync.WaitGroup
}

// visit is one connection to a rawServer.
type visit struct {
	net.Conn
	r      *bufio.Reader
	n      int // which connection of the server this is, from 0
	server *rawServer
	raw    net.Conn   // below TLS
	rand   *rand.Rand // of this connection
}

// newRawServer serves each connection by serve, which ends when the connection should be closed.
func newRawServer(tb testing.TB, serve func(v *visit)) *rawServer {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return serveRaw(tb, l, serve)
}

func serveRaw(tb testing.TB, l net.Listener, serve func(v *visit)) *rawServer {
	s := &rawServer{Listener: l, seen: make(map[string]int)}
	s.all.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			s.all.Go(func() {
				defer c.Close()
				serve(&visit{
					Conn: c, r: bufio.NewReaderSize(c, 64<<10), n: n, server: s, raw: c,
					rand: rand.New(rand.NewPCG(rand.Uint64(), 0)),
				})
			})
		}
	})
	tb.Cleanup(s.stop)
	return s
}

func (s *rawServer) stop() {
	s.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
}

func (s *rawServer) url() string { return "http://" + s.Addr().String() }

func (s *rawServer) count(target string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[target]
}

// total counts the orders that came, and the most that one of them came.
func (s *rawServer) total() (orders, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.seen {
		orders += n
		most = max(most, n)
	}
	return orders, most
}

// head reads one request's head, records it, and returns it whole.
func (v *visit) head() (string, error) {
	var all strings.Builder
	for {
		line, err := v.r.ReadString('\n')
		if err != nil {
			return "", err
		}
		if all.Len() == 0 {
			_, target, _ := strings.Cut(line, " ")
			target, _, _ = strings.Cut(target, " ")
			v.server.mu.Lock()
			v.server.seen[target]++
			v.server.mu.Unlock()
		}
		all.WriteString(line)
		if line == "\r\n" {
			return all.String(), nil
		}
	}
}

// request reads one request with its body, counted or chunked as it is.
func (v *visit) request() (head, body string, err error) {
	if head, err = v.head(); err != nil {
		return "", "", err
	}
	length := 0
	for line := range strings.SplitSeq(head, "\r\n") {
		if l, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			length, _ = strconv.Atoi(l)
		}
	}
	if strings.Contains(head, "Transfer-Encoding: chunked") {
		body, err = v.chunks()
		return head, body, err
	}
	b := make([]byte, length)
	_, err = io.ReadFull(v.r, b)
	return head, string(b), err
}

func (v *visit) chunks() (string, error) {
	var all strings.Builder
	for {
		line, err := v.r.ReadString('\n')
		if err != nil {
			return "", err
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(line, "\r\n"), 16, 64)
		if err != nil {
			return "", err
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(v.r, b); err != nil {
			return "", err
		}
		if n == 0 {
			return all.String(), nil
		}
		all.Write(b[:n])
	}
}

func (v *visit) reply(s string) { io.WriteString(v.Conn, s) }

// waitClosed waits until the other side has closed.
func (v *visit) waitClosed() { io.Copy(io.Discard, v.r) }

// reset closes with a RST.
func (v *visit) reset() {
	if c, ok := v.raw.(*net.TCPConn); ok {
		c.SetLinger(0)
	}
	v.raw.Close()
}

// ok is a response with a counted body.
func ok(body string) string {
	return "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// each has every request of the connection answered by its head.
func (v *visit) each(answer func(head string)) {
	for {
		head, _, err := v.request()
		if err != nil {
			return
		}
		answer(head)
	}
}

// echo answers every request with its own target as the body.
func echo(v *visit) { v.each(func(head string) { v.reply(ok(targetOf(head))) }) }

func targetOf(head string) string {
	f := strings.Fields(head)
	return f[1]
}

// newRequest is a request with an empty Host and these lines after it.
func newRequest(method, target string, lines ...string) *Request {
	r := new(Request)
	r.Reset()
	r.Whole = true
	r.HTTP.Header.SetMethod(method)
	r.HTTP.Header.SetRequestURI(target)
	r.HTTP.Header.Add("Host", "")
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.HTTP.Header.Add(name, value)
	}
	return r
}

// withBody adds a body that is in memory.
func (r *Request) withBody(body []byte) *Request {
	r.HTTP.Header.Add("Content-Length", strconv.Itoa(len(body)))
	r.HTTP.SetBodyRaw(body)
	return r
}

// withStream adds a body that comes from a stream, of size bytes or, with -1, in chunks.
func (r *Request) withStream(body io.Reader, size int) *Request {
	if size < 0 {
		r.HTTP.Header.Add("Transfer-Encoding", "chunked")
	} else {
		r.HTTP.Header.Add("Content-Length", strconv.Itoa(size))
	}
	r.HTTP.SetBodyStream(body, size)
	return r
}

// newOrder is a small order by any method, with its own target to know it by.
func newOrder(method, target string) *Request {
	r := newRequest(method, target, "X-Test: yes")
	r.Order = true
	if method != "GET" && method != "HEAD" {
		r.withBody([]byte("{}"))
	}
	return r
}

// newPage is a GET whose response may be handed on as it comes.
func newPage(target string) *Request {
	r := newRequest("GET", target)
	r.Whole = false
	return r
}

// sendOrder sends one order and returns what came of it.
func sendOrder(p *Pool, method, target string) (Outcome, *fasthttp.Response) {
	resp := new(fasthttp.Response)
	return p.Send(newOrder(method, target), resp), resp
}

// sendAndRead sends a request and reads its response to the end. A stream that breaks off is Broken.
func sendAndRead(p *Pool, req *Request) (Outcome, string) {
	resp := new(fasthttp.Response)
	outcome := p.Send(req, resp)
	if !resp.IsBodyStream() {
		return outcome, string(resp.Body())
	}
	body, err := io.ReadAll(resp.BodyStream())
	resp.CloseBodyStream()
	if err != nil {
		outcome = Broken
	}
	return outcome, string(body)
}

// mustAnswer fails the test unless target gets exactly its own response.
func mustAnswer(t *testing.T, p *Pool, target string) {
	t.Helper()
	outcome, resp := sendOrder(p, "POST", target)
	if outcome != Answered {
		t.Fatalf("%s: %v", target, outcome)
	}
	if !bytes.Equal(resp.Body(), []byte(target)) {
		t.Fatalf("%s got another's response: %.100q", target, resp.Body())
	}
}

// checkConns compares the only target's connections: in use, and idle.
func checkConns(t *testing.T, p *Pool, inUse, idle int) {
	t.Helper()
	if st := p.Targets()[0]; st.Open != inUse+idle || st.Idle != idle || st.InFlight != inUse {
		t.Errorf("%+v, want %d in use and %d idle", st, inUse, idle)
	}
}

func options(targets ...string) Options {
	return Options{
		Targets: targets, Policy: "least_conn", MaxConns: 64, ConnectTimeout: 5 * time.Second,
		ResponseTimeout: 20 * time.Second, Timeout: 30 * time.Second, IdleConnTimeout: time.Minute, Retry: "connect",
	}
}

func newPool(tb testing.TB, o Options) *Pool {
	tb.Helper()
	p, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// replace gives p other targets.
func replace(p *Pool, urls []string) error {
	o := *p.options.Load()
	o.Targets = urls
	return reconfigure(p, o)
}

// reconfigure puts o into force.
func reconfigure(p *Pool, o Options) error {
	use, err := p.Prepare(o)
	if err == nil {
		use()
	}
	return err
}

func port(a net.Addr) string {
	_, p, _ := net.SplitHostPort(a.String())
	return p
}

// closedPort is a target on which no server listens.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) }) // until then no other process gets the port
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

// wrapped is a connection as an event loop hands it out: no *net.TCPConn, but a socket.
type wrapped struct{ net.Conn }

func (w wrapped) SyscallConn() (syscall.RawConn, error) { return w.Conn.(syscall.Conn).SyscallConn() }

func fieldsOf(h *fasthttp.ResponseHeader) []string {
	var all []string
	for k, v := range h.All() {
		all = append(all, fmt.Sprintf("%s: %s", k, v))
	}
	return all
}

func wrap(c net.Conn) net.Conn { return wrapped{c} }

// openPlace takes a place of t for an order, where a connection is to be opened.
func openPlace(t *target) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, err := t.take(true); c != nil || err != nil {
		panic("a connection is idle, or none can be opened")
	}
	return nil
}
