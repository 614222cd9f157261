package server

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
)

func TestServer_SlowHeadIsTold408AndSlowBodyTimesOut(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		h := &handler{}
		send := opensWhenSent(h)
		s, addr := e.start(t, h, Options{IdleTimeout: time.Minute, ReadHeaderTimeout: time.Second,
			ReadTimeout: 100 * time.Millisecond})
		for raw, want := range map[string]string{"GET / HT": "head_late", strings.TrimSuffix(order, "&"): "body: "} {
			got := send(t, addr, raw)
			if !strings.HasPrefix(got, "HTTP/1.1 408 ") || !strings.Contains(got, "\r\nConnection: close\r\n") ||
				!strings.Contains(got, want) {
				t.Errorf("%q: %q", raw, got)
			}
		}
		if n := s.Stats().ProtocolErrors[headLate]; n != 1 {
			t.Errorf("counted %d times", n)
		}
	})
}

func TestServer_HeadsOfEverySizeUpToTheLimitAreServed(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		h := &handler{handle: func(x *served) {
			_, err := bodyOf(x.Conn)
			answerText(x, 200, fmt.Sprint(len(x.Request.Peek("A")), err))
		}}
		s, addr := e.start(t, h, long)
		c := connect(t, addr)
		head := func(n int) string { return get("A: " + strings.Repeat("x", n)) }
		for _, n := range []int{10, 4000, usualHead - 50, usualHead - len(head(0)), usualHead, 10, 9000, 15 << 10, 10} {
			c.send(head(n))
			c.expect(200, fmt.Sprint(n, " <nil>"))
		}
		if got := converse(t, addr, head(17<<10)); !strings.HasSuffix(got, "header_too_large") {
			t.Errorf("over the limit: %q", got)
		}
		s.Use(Limits{Header: 20 << 10}, Options{})
		c.send(head(17 << 10)) // the connection was idle: its next head has the new limits
		c.expect(200, fmt.Sprint(17<<10, " <nil>"))
	})
}

func TestServer_RejectsAHeadOnceAndReadsNothingBehindIt(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		handled := atomic.Int64{}
		h := &handler{handle: func(x *served) { handled.Add(1); echo(x) }}
		s, addr := e.start(t, h, long)
		all := converse(t, addr, order+get("Host: s")+order)
		if strings.Count(all, "HTTP/1.1 ") != 2 || !strings.Contains(all, "HTTP/1.1 400 ") || !strings.HasSuffix(all,
			"host_twice") {
			t.Errorf("%q", all)
		}
		if n := s.Stats().ProtocolErrors[hostTwice]; n != 1 || handled.Load() != 1 || h.errors.Load() != 1 {
			t.Errorf("counted %d times, handled %d requests", n, handled.Load())
		}
	})
}

// "close" among other options, in any letter case and on any line, ends the connection, and the answer says so.
func TestServer_CloseIsHonouredAndSaid(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		_, addr := e.start(t, &handler{}, long)
		for _, fields := range [][]string{
			{"Connection: close"}, {"connection: CLOSE"}, {"Connection: keep-alive, close"}, {"Connection: Close, X-A"},
			{"Connection: close", "Connection: keep-alive"},
		} {
			all := converse(t, addr, get(fields...)+get())
			if strings.Count(all, "HTTP/1.1 200 OK\r\n") != 1 || !strings.Contains(all, "\r\nConnection: close\r\n") {
				t.Errorf("%q: %q", fields, all)
			}
		}
	})
}

func TestServer_HTTP10StaysWhereItAsksTo(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		_, addr := e.start(t, &handler{}, long)
		const stays, ends = "GET / HTTP/1.0\r\nConnection: X-A, Keep-Alive\r\n\r\n",
			"GET / HTTP/1.0\r\nHost: s\r\nConnection: X-A\r\n\r\n"
		all := converse(t, addr, stays+stays+ends+stays)
		if strings.Count(all, "\r\nConnection: keep-alive\r\n") != 2 || strings.Count(all,
			"\r\nConnection: close\r\n") != 1 || strings.Count(all, "200 OK") != 3 {
			t.Errorf("%q", all)
		}
	})
}

func TestServer_HalfClosedClientReadsItsAnswers(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		_, addr := e.start(t, &handler{}, long)
		c := connect(t, addr)
		c.send(get() + get())
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if all := c.rest(); strings.Count(all, "HTTP/1.1 200 OK\r\n") != 2 {
			t.Errorf("%q", all)
		}
	})
}

// A handler that waits delays its own connection alone, however few processors there are.
func TestServer_HandlerThatStepsAsideDelaysNoOther(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		answer := make(chan struct{})
		_, addr := e.start(t, &handler{handle: func(x *served) {
			if string(x.Request.Path) == "/wait" {
				x.Conn.StepAside()
				<-answer
			}
			answerText(x, 200, "")
		}}, long)
		var waiting []*client
		for range 30 {
			c := connect(t, addr)
			c.send(line("GET /wait HTTP/1.1"))
			waiting = append(waiting, c)
		}
		for range 10 {
			c := connect(t, addr)
			c.send(get())
			c.expect(200, "")
		}
		close(answer)
		for _, c := range waiting {
			c.expect(200, "")
			c.send(get())
			c.expect(200, "")
		}
	})
}

// nextHasItsTime lets a handler take twice the timeout for a request, while the next one has come in part. The client
// sends the rest when it has the answer.
func nextHasItsTime(t *testing.T, timeout time.Duration, dial func(*handler, Options) *client) {
	for name, cutAt := range map[string]int{"head": 20, "body": len(order) - 1} {
		slow := atomic.Bool{}
		slow.Store(true)
		c := dial(&handler{handle: func(x *served) {
			if x.Conn.StepAside(); slow.Swap(false) {
				time.Sleep(2 * timeout) // longer than the next request has; in the normal tier of a bubble
			}
			echo(x)
		}}, Options{ReadHeaderTimeout: timeout, ReadTimeout: timeout, IdleTimeout: time.Minute})
		c.send(order[:1])
		c.send(order[1:] + order[:cutAt])
		for range 2 {
			if resp, body := c.receive("POST"); resp.StatusCode != 200 {
				t.Fatalf("%s: %d %q", name, resp.StatusCode, body)
			}
			c.send(order[cutAt:])
		}
		c.Close()
	}
}

func TestServer_HandlersTimeIsNotTheNextRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nextHasItsTime(t, time.Second, func(h *handler, o Options) *client {
			client, served := net.Pipe()
			s := NewServer(h, Limits{}, o)
			go s.accept(served)
			return clientOf(t, client)
		})
	})
}

func TestServer_HandlersTimeIsNotTheNextRequestsOverSockets(t *testing.T) {
	testkit.Nightly(t, "its client has to be in time")
	eachEngine(t, func(t *testing.T, e engine) {
		nextHasItsTime(t, time.Second, func(h *handler, o Options) *client {
			_, addr := e.start(t, h, o)
			return connect(t, addr)
		})
	})
}

// Ending a connection over bytes that were not read would reset the answer away (RFC 9112, section 9.6).
func TestServer_LastAnswerIsNotResetAway(t *testing.T) {
	const next, size = "GET /2 HTTP/1.1\r\nHost: s\r\n\r\n", 300_000
	for name, dial := range map[string]func(addr string) (net.Conn, error){
		"plain": func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) },
		"TLS": func(addr string) (net.Conn, error) {
			return tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		},
		"PROXY protocol": func(addr string) (net.Conn, error) {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				_, err = io.WriteString(c, "PROXY TCP4 6.6.6.6 127.0.0.1 1234 80\r\n")
			}
			return c, err
		},
	} {
		for _, ending := range []string{"drain", "handler"} {
			t.Run(name+" "+ending, func(t *testing.T) {
				eachEngine(t, func(t *testing.T, e engine) {
					asked, answer := make(chan bool), make(chan bool)
					h := &handler{handle: func(x *served) {
						x.Conn.StepAside()
						asked <- true
						<-answer
						if ending == "handler" {
							x.Conn.CloseAfterResponse()
						}
						x.Forwarded.SetBodyString(strings.Repeat("x", size))
					}}
					o := long
					switch name {
					case "TLS":
						o.TLS = testkit.SelfSigned(t)
					case "PROXY protocol":
						o.ProxyProtocol = always
					}
					s, addr := e.start(t, h, o)
					if ending == "drain" {
						s.AnnounceShutdown()
					}
					for i := range 6 {
						nc, err := dial(addr)
						if err != nil {
							t.Fatal(err)
						}
						if tcp, plain := nc.(*net.TCPConn); plain {
							_ = tcp.SetReadBuffer(32 << 10) // most of the answer waits at the server's side
						}
						c := clientOf(t, nc)
						c.in = bufio.NewReaderSize(nc, 16)
						c.send("GET /1 HTTP/1.1\r\nHost: s\r\n\r\n")
						<-asked
						if i%2 == 0 {
							c.send(next)
						}
						answer <- true
						if i%2 == 1 {
							if _, err := c.in.Peek(1); err != nil {
								t.Fatal(err)
							}
							c.send(next)
						}
						if resp, body := c.receive("GET"); !resp.Close || len(body) != size {
							t.Errorf("connection %d: closes %v, %d bytes", i, resp.Close, len(body))
						}
					}
				})
			})
		}
	}
}

// busy answers each request with the same.
type busy struct{ handler }

func (*busy) Handle(ctx *fasthttp.RequestCtx) {
	Begin(&ctx.Response, 429)
	ctx.Response.Header.Add("Content-Type", "text/plain")
	ctx.Response.AppendBodyString("busy")
}

func TestServer_LocalAnswersDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	eachEngine(t, func(t *testing.T, e engine) {
		_, addr := e.start(t, &busy{}, long)
		c := connect(t, addr)
		request, buf := []byte(browser), make([]byte, 1<<10)
		ask := func() {
			if _, err := c.Write(request); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(buf); err != nil || n < 20 {
				t.Fatal(n, err)
			}
		}
		ask()
		if n := testing.AllocsPerRun(500, ask); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func BenchmarkServer_LocalAnswer(b *testing.B) {
	s := NewServer(&handler{handle: func(x *served) { answerText(x, 429, "busy") }}, Limits{}, Options{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go s.Serve(ln)
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	request, buf := []byte(browser), make([]byte, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Write(request)
		if _, err := c.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}
