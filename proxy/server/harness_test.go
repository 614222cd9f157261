package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
)

// fullAnswer is what a connection hears for which there is no descriptor.
const fullAnswer = "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// handler is a Handler made of functions. The zero value admits every connection and answers "METHOD TARGET BODY".
type handler struct {
	handle func(*served)
	open   func(*Conn) ([]byte, bool)

	opened, closed atomic.Int64
	errors         atomic.Int64
}

func (h *handler) OpenConn(c *Conn, full bool) ([]byte, bool) {
	if full {
		return []byte(fullAnswer), false
	}
	if h.open != nil {
		if answer, ok := h.open(c); !ok {
			return answer, false
		}
	}
	h.opened.Add(1)
	return nil, true
}

func (h *handler) Handle(ctx *fasthttp.RequestCtx) {
	if h.handle != nil {
		h.handle(servedBy(ctx))
		return
	}
	echo(servedBy(ctx))
}

func (h *handler) ProtocolError(ctx *fasthttp.RequestCtx, e ProtocolError) {
	h.errors.Add(1)
	answerText(servedBy(ctx), e.Status, e.Rule.String())
}

// served is a request and its answer, as tests see them.
type served struct {
	Conn      *Conn
	Request   *Request
	Forwarded *fasthttp.Response
}

func servedBy(ctx *fasthttp.RequestCtx) *served {
	c, _ := Of(ctx)
	return &served{c, c.Request(), &ctx.Response}
}

func (h *handler) CloseConn(*Conn) { h.closed.Add(1) }

// answerText is a local answer.
func answerText(x *served, status int, text string) {
	Begin(x.Forwarded, status)
	x.Forwarded.AppendBodyString(text)
}

// echo answers with what it was asked for.
func echo(x *served) {
	body, err := bodyOf(x.Conn)
	if err != nil {
		answerText(x, 408, "body: "+err.Error())
		x.Conn.CloseAfterResponse()
		return
	}
	answerText(x, 200, fmt.Sprintf("%s %s %s", x.Request.Method, x.Request.Target, body))
}

// bodyOf reads the body of the request.
func bodyOf(c *Conn) ([]byte, error) {
	var all bytes.Buffer
	buf := make([]byte, 1000)
	for {
		n, err := c.ReadBody(buf)
		all.Write(buf[:n])
		if err == io.EOF {
			return all.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// engine is a way in which connections are waited for.
type engine func(net.Listener) net.Listener

// usual is the engine of the build: event loops, unless it has none.
func usual(ln net.Listener) net.Listener { return ln }

// hidden is the reference engine.
func hidden(ln net.Listener) net.Listener { return struct{ *net.TCPListener }{ln.(*net.TCPListener)} }

// eachEngine runs test for the usual engine; nightly for the reference engine as well.
func eachEngine(t *testing.T, test func(t *testing.T, e engine)) {
	t.Run("event loop", func(t *testing.T) { test(t, usual) })
	t.Run("goroutines", func(t *testing.T) {
		testkit.Nightly(t, "the same once more, on the reference engine")
		test(t, hidden)
	})
}

// start runs a Server on a port of its own until the test ends.
func (e engine) start(t *testing.T, h Handler, o Options) (s *Server, addr string) {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s = NewServer(h, Limits{Header: 16 << 10}, o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(e(ln))
	}()
	t.Cleanup(func() {
		s.mu.Lock()
		for _, ln := range s.listeners {
			ln.Close() // at once: Drain alone would wait for the backlog
		}
		s.mu.Unlock()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Drain(ctx)
		<-ended
	})
	return s, ln.Addr().String()
}

// client is a connection with a deadline, closed when the test ends.
type client struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func connect(t *testing.T, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, c)
}

func clientOf(t *testing.T, c net.Conn) *client {
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return &client{c, t, bufio.NewReader(c)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads one whole answer to method.
func (c *client) receive(method string) (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("no whole answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("answer cut short: %v", err)
	}
	return resp, string(body)
}

// expect reads one answer, and compares it.
func (c *client) expect(status int, body string) *http.Response {
	c.t.Helper()
	resp, got := c.receive("GET")
	if resp.StatusCode != status || got != body {
		c.t.Fatalf("answered %d %.200q, want %d %.200q", resp.StatusCode, got, status, body)
	}
	return resp
}

// rest reads all until the server ends the connection.
func (c *client) rest() string {
	c.t.Helper()
	all, err := io.ReadAll(c.in)
	if err != nil {
		c.t.Fatalf("the connection broke after %q: %v", all, err)
	}
	return string(all)
}

// reset ends the connection with a reset.
func (c *client) reset() {
	_ = c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// converse sends raw on a connection of its own and returns all that comes until its end.
func converse(t *testing.T, addr, raw string) string {
	t.Helper()
	c := connect(t, addr)
	c.send(raw)
	return c.rest()
}

// opensWhenSent has h open a connection when its first bytes have come: the client need not hurry. converse is for one
// connection at a time.
func opensWhenSent(h *handler) (converse func(t *testing.T, addr, raw string) string) {
	sent := make(chan struct{}, 1)
	h.open = func(*Conn) ([]byte, bool) { <-sent; return nil, true }
	return func(t *testing.T, addr, raw string) string {
		t.Helper()
		c := connect(t, addr)
		c.send(raw)
		sent <- struct{}{}
		return c.rest()
	}
}

// inPhase is how many connections of s are in a phase.
func (s *Server) inPhase(p phase) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		if c.phase.Load() == p {
			n++
		}
	}
	return n
}

var long = Options{ReadHeaderTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
	IdleTimeout: time.Minute}
