package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"sluice/proxy"
)

func TestMain(m *testing.M) {
	// fasthttp keeps the date in a goroutine of its own, from the first header that it writes on.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// rawShop is a shop on a real socket that says exactly the bytes it is told to, and records every
// order that reached it, by the path in its request line.
type rawShop struct {
	net.Listener
	mu    sync.Mutex
	seen  map[string]int // request target: how often
	conns []net.Conn
	all   sync.WaitGroup
}

// visit is one connection to a rawShop.
type visit struct {
	net.Conn
	r    *bufio.Reader
	n    int // which connection of the shop this is, from 0
	shop *rawShop
}

// newRawShop serves each connection by serve, which ends when the connection should be closed.
func newRawShop(tb testing.TB, serve func(v *visit)) *rawShop {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return serveRaw(tb, l, serve)
}

func serveRaw(tb testing.TB, l net.Listener, serve func(v *visit)) *rawShop {
	s := &rawShop{Listener: l, seen: make(map[string]int)}
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
				serve(&visit{Conn: c, r: bufio.NewReaderSize(c, 64<<10), n: n, shop: s})
			})
		}
	})
	tb.Cleanup(s.stop)
	return s
}

func (s *rawShop) stop() {
	s.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
}

func (s *rawShop) url() string { return "http://" + s.Addr().String() }

func (s *rawShop) count(target string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[target]
}

// total counts the orders that came, and the most that one of them came.
func (s *rawShop) total() (orders, most int) {
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
			v.shop.mu.Lock()
			v.shop.seen[target]++
			v.shop.mu.Unlock()
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

func (v *visit) say(s string) { io.WriteString(v.Conn, s) }

// gone waits until the other side has closed.
func (v *visit) gone() { io.Copy(io.Discard, v.r) }

// reset closes with a RST.
func (v *visit) reset() {
	v.Conn.(*net.TCPConn).SetLinger(0)
	v.Conn.Close()
}

// ok is an answer with a counted body.
func ok(body string) string {
	return "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// answerEach answers every request with its own target as the body.
func answerEach(v *visit) {
	for {
		head, _, err := v.request()
		if err != nil {
			return
		}
		v.say(ok(targetOf(head)))
	}
}

func targetOf(head string) string {
	f := strings.Fields(head)
	return f[1]
}

// orderFor is a small order by any method, with its own target to know it by.
func orderFor(method, target string) *proxy.Outgoing {
	body := "{}"
	if method == "GET" || method == "HEAD" {
		body = ""
	}
	o := &proxy.Outgoing{
		Line:   []byte(method + " " + target + " HTTP/1.1\r\n"),
		Fields: []byte("X-Test: yes\r\n"),
		Order:  true,
		Head:   method == "HEAD",
	}
	if body != "" {
		o.Body = []byte(body)
		o.Fields = append(o.Fields, "Content-Length: 2\r\n"...)
	}
	return o
}

// sendFor sends one order and returns what came of it.
func sendFor(p *Pool, method, target string) (proxy.Outcome, *fasthttp.Response) {
	resp := new(fasthttp.Response)
	return p.Send(orderFor(method, target), resp), resp
}

// mustAnswer fails the test unless target gets exactly its own answer.
func mustAnswer(t *testing.T, p *Pool, target string) {
	t.Helper()
	outcome, resp := sendFor(p, "POST", target)
	if outcome != proxy.Answered {
		t.Fatalf("%s: outcome %d", target, outcome)
	}
	if !bytes.Equal(resp.Body(), []byte(target)) {
		t.Fatalf("%s got another's answer: %.100q", target, resp.Body())
	}
}

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }
