package http1

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestServer_RejectedConnectionReadsAWholeAnswer(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		var left atomic.Int64
		left.Store(1)
		const answer = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy"
		h := &handler{open: func(*Conn) ([]byte, bool) { return []byte(answer), left.Add(-1) >= 0 }}
		s, addr := e.start(t, h, long)
		c := connect(t, addr)
		c.send(get())
		c.expect(200, "GET /a ")
		for range 5 {
			if got := converse(t, addr, get()); got != answer {
				t.Errorf("answered %q", got)
			}
		}
		c.Close()
		eventually(t, "the connection is closed", func() bool { return h.closed.Load() == 1 && s.Stats().Connections == 0 })
		if n := h.opened.Load(); n != 1 {
			t.Errorf("%d connections were open", n)
		}
	})
}

func TestServer_RejectedConnectionOverTLSIsClosedWithoutAnAnswer(t *testing.T) {
	h := &handler{open: func(*Conn) ([]byte, bool) { return []byte("HTTP/1.1 429 Too Many\r\n\r\n"), false }}
	_, addr := engine(hidden).start(t, h, Options{TLS: &tls.Config{}})
	if got := converse(t, addr, ""); got != "" {
		t.Errorf("answered %q", got)
	}
}

// hidden is the reference engine.
func hidden(ln net.Listener) net.Listener { return struct{ *net.TCPListener }{ln.(*net.TCPListener)} }

func TestServer_ConnectionThatWaitedServesItsNextRequest(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s, addr := e.start(t, &handler{}, long)
		c := connect(t, addr)
		for range 3 {
			eventually(t, "the connection is idle", func() bool { return s.inPhase(phaseIdle) == 1 })
			c.send(order[:1]) // the first byte comes alone
			c.send(order[1:])
			c.expect(200, "POST /a "+order[strings.Index(order, "\r\n\r\n")+4:])
		}
	})
}

func TestServer_ServesTLSAndUnixSockets(t *testing.T) {
	h := &handler{handle: func(x *Exchange) {
		answerText(x, 200, fmt.Sprintf("%v %v %d", x.Conn.Secure(), x.Conn.Peer(), x.Conn.Requests()))
	}}
	o := long
	o.TLS = selfSigned(t)
	_, addr := engine(hidden).start(t, h, o)
	secure, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/s"
	s := NewServer(h, Limits{}, long)
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	t.Cleanup(func() { s.Drain(t.Context()) })
	local, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	for want, nc := range map[string]net.Conn{"true 127.0.0.1": secure, "false invalid IP": local} {
		c := clientOf(t, nc)
		c.send(get())
		c.expect(200, want+" 1")
		c.send(get() + get("Connection: close"))
		c.expect(200, want+" 2")
		c.expect(200, want+" 3")
		c.rest()
	}
}

func TestServer_IdleConnectionsOfLoopsNeedNoGoroutine(t *testing.T) {
	if newEventLoops(NewServer(&handler{}, Limits{}, Options{})) == nil {
		t.Skip("there are no event loops in this build")
	}
	s, addr := engine(func(ln net.Listener) net.Listener { return ln }).start(t, &handler{}, long)
	before := runtime.NumGoroutine()
	const many = 400
	for range many {
		c := connect(t, addr)
		c.send(get())
		c.expect(200, "GET /a ")
	}
	eventually(t, "all are idle", func() bool { return s.inPhase(phaseIdle) == many })
	eventually(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() < before+many })
}

func TestServer_IdleConnectionEndsWithoutAWord(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		h := &handler{}
		_, addr := e.start(t, h, Options{IdleTimeout: 50 * time.Millisecond, ReadHeaderTimeout: 50 * time.Millisecond})
		for _, first := range []string{"", get(), "\r\n"} {
			if got := converse(t, addr, first); strings.Count(got, "HTTP/1.1") != strings.Count(first, "GET") {
				t.Errorf("after %q: %q", first, got)
			}
		}
		eventually(t, "all are closed", func() bool { return h.closed.Load() == 3 })
	})
}

func TestServer_ClientsThatHangUpAreForgotten(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		h := &handler{}
		s, addr := e.start(t, h, long)
		for i := range 20 {
			c := connect(t, addr)
			c.send(get()[:i])
			if c.Close(); i%2 == 0 {
				c.reset()
			}
		}
		eventually(t, "all are closed", func() bool { return h.closed.Load() == 20 && s.Stats().Connections == 0 })
	})
}

func TestServer_SlowHeadIsTold408AndSlowBodyTimesOut(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		o := Options{IdleTimeout: time.Minute, ReadHeaderTimeout: 50 * time.Millisecond, ReadTimeout: 50 * time.Millisecond}
		s, addr := e.start(t, &handler{}, o)
		for raw, want := range map[string]string{"GET / HT": "head_late", strings.TrimSuffix(order, "&"): "body: "} {
			got := converse(t, addr, raw)
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
		h := &handler{handle: func(x *Exchange) {
			_, err := bodyOf(x.Conn)
			answerText(x, 200, fmt.Sprint(len(x.Request.Peek("A")), err))
		}}
		s, addr := e.start(t, h, long)
		c := connect(t, addr)
		head := func(n int) string { return get("A: " + strings.Repeat("x", n)) }
		for _, n := range []int{10, 4000, smallBuffer - 50, smallBuffer - len(head(0)), smallBuffer, 10, 9000, 15 << 10, 10} {
			c.send(head(n))
			c.expect(200, fmt.Sprint(n, " <nil>"))
		}
		if got := converse(t, addr, head(17<<10)); !strings.HasSuffix(got, "header_too_large") {
			t.Errorf("over the limit: %q", got)
		}
		s.SetLimits(Limits{Header: 20 << 10})
		c.send(head(17 << 10)) // the connection was idle: its next head has the new limits
		c.expect(200, fmt.Sprint(17<<10, " <nil>"))
	})
}

func TestServer_RejectsAHeadOnceAndReadsNothingBehindIt(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		handled := atomic.Int64{}
		h := &handler{handle: func(x *Exchange) { handled.Add(1); echo(x) }}
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

func TestServer_BrokenBodyIsCountedOnce(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		h := &handler{handle: func(x *Exchange) {
			for range 3 {
				if _, err := bodyOf(x.Conn); err != badChunkSize.err() {
					t.Errorf("the body gives %v", err)
				}
			}
			answerText(x, 400, "broken")
		}}
		s, addr := e.start(t, h, long)
		if all := converse(t, addr, chunked("x\r\n")+get()); strings.Count(all, "HTTP/1.1 ") != 1 ||
			!strings.HasSuffix(all, "broken") {
			t.Errorf("%q", all)
		}
		if n := s.Stats().ProtocolErrors[badChunkSize]; n != 1 {
			t.Errorf("counted %d times", n)
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
		_, addr := e.start(t, &handler{handle: func(x *Exchange) {
			if string(x.Request.Path()) == "/wait" {
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

// A head that came along with the request before it has its own time for the rest, and its own 100.
func TestServer_PipelinedBodyIsAskedForToo(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		begun := make(chan struct{}, 2)
		_, addr := e.start(t, &handler{handle: func(x *Exchange) { begun <- struct{}{}; echo(x) }}, long)
		c := connect(t, addr)
		c.send(chunked(""))
		<-begun // its body comes in pieces
		c.send("2\r\nhi\r\n0\r\n\r\n" + post("", "Expect: 100-continue", "Content-Length: 2"))
		c.expect(200, "POST /a hi")
		if line, err := c.in.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q, %v", line, err)
		}
		_, _ = c.in.ReadString('\n')
		c.send("ho")
		c.expect(200, "POST /a ho")
	})
}

func TestServer_HandlersTimeIsNotTheNextRequests(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		const timeout = 200 * time.Millisecond
		slow := atomic.Bool{}
		_, addr := e.start(t, &handler{handle: func(x *Exchange) {
			if x.Conn.StepAside(); slow.Swap(false) {
				time.Sleep(2 * timeout)
			}
			echo(x)
		}}, Options{ReadHeaderTimeout: timeout, ReadTimeout: timeout, IdleTimeout: time.Minute})
		for name, cutAt := range map[string]int{"head": 20, "body": len(order) - 1} {
			slow.Store(true)
			c := connect(t, addr)
			c.send(order[:1])
			c.send(order[1:] + order[:cutAt])
			for range 2 {
				if resp, body := c.receive("POST"); resp.StatusCode != 200 {
					t.Fatalf("%s: %d %q", name, resp.StatusCode, body)
				}
				c.send(order[cutAt:])
			}
		}
	})
}

func TestConn_BodyIsAskedForOnlyWhenItIsRead(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		_, addr := e.start(t, &handler{handle: func(x *Exchange) {
			if string(x.Request.Path()) == "/no" {
				answerText(x, 409, "no")
				return
			}
			echo(x)
		}}, long)
		const head = "POST %s HTTP/1.1\r\nHost: s\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
		if all := converse(t, addr, fmt.Sprintf(head, "/no")); !strings.HasPrefix(all, "HTTP/1.1 409 ") ||
			!strings.Contains(all, "Connection: close") {
			t.Errorf("%q", all)
		}
		c := connect(t, addr)
		c.send(fmt.Sprintf(head, "/yes"))
		if text, err := c.in.ReadString('\n'); err != nil || text != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q, %v", text, err)
		}
		_, _ = c.in.ReadString('\n')
		c.send("hi")
		c.expect(200, "POST /yes hi")
		c.send("POST /old HTTP/1.0\r\nHost: s\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nho")
		c.expect(200, "POST /old ho")
	})
}

// Many clients send head and body in two packets: a short body that is still on its way costs no connection, and its
// bytes are no request, whatever they say.
func TestConn_SkippedBodyIsNoRequest(t *testing.T) {
	const inside = "GET /inside HTTP/1.1\r\nHost: s\r\n\r\n"
	eachEngine(t, func(t *testing.T, e engine) {
		for name, c := range map[string]struct {
			length int
			field  string
			keeps  bool
		}{
			"short":          {len(inside), "A: b", true},
			"long":           {maxSkippedBody + 1, "A: b", false},
			"expected":       {len(inside), "Expect: 100-continue", false},
			"the last":       {len(inside), "Connection: close", false},
			"none announced": {0, "A: b", true},
		} {
			t.Run(name, func(t *testing.T) {
				_, addr := e.start(t, &handler{handle: func(x *Exchange) {
					switch path := string(x.Request.Path()); {
					case path != "/a":
						answerText(x, 200, path)
						return
					case x.Conn.SkipBody() != c.keeps:
						t.Error("SkipBody says otherwise")
					}
					answerText(x, 409, "no")
				}}, long)
				k := connect(t, addr)
				for range 2 {
					k.send(post("", c.field, fmt.Sprintf("Content-Length: %d", c.length)))
					if resp := k.expect(409, "no"); resp.Close == c.keeps {
						t.Fatalf("closes: %v", resp.Close)
					}
					if !c.keeps {
						return
					}
					k.send(strings.Repeat(inside, c.length/len(inside)))
				}
				k.send(line("GET /after HTTP/1.1"))
				k.expect(200, "/after")
			})
		}
	})
}

func TestConn_SkippedBodyThatNeverComesEndsTheConnection(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		_, addr := e.start(t, &handler{handle: func(x *Exchange) {
			x.Conn.SkipBody()
			answerText(x, 409, "no")
		}}, Options{ReadTimeout: 50 * time.Millisecond})
		c := connect(t, addr)
		c.send(post("hel", "Content-Length: 5"))
		c.expect(409, "no")
		if rest := c.rest(); rest != "" {
			t.Errorf("then came %q", rest)
		}
	})
}

// A body that the handler leaves unread is never read as a request: the connection ends, unless all of it has come.
func TestServer_UnreadBodyIsNoRequest(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		_, addr := e.start(t, &handler{handle: func(x *Exchange) { answerText(x, 200, string(x.Request.Path())) }}, long)
		inside := line("GET /inside HTTP/1.1")
		length := fmt.Sprintf("Content-Length: %d", len(inside))
		if all := converse(t, addr, post(inside, length)+line("GET /b HTTP/1.0")); strings.Count(all, "200 OK") != 2 ||
			strings.Contains(all, "/inside") {
			t.Errorf("%q", all)
		}
		c := connect(t, addr)
		c.send(post("", length))
		if resp := c.expect(200, "/a"); !resp.Close {
			t.Error("the connection goes on")
		}
		c.rest()
	})
}

func TestConn_AbortEndsReadsAndWrites(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		begun := make(chan *Conn)
		failed := make(chan error)
		h := &handler{handle: func(x *Exchange) {
			x.Conn.StepAside()
			begun <- x.Conn
			_, err := bodyOf(x.Conn)
			failed <- err
		}}
		_, addr := e.start(t, h, Options{})
		c := connect(t, addr)
		c.send(chunked(""))
		(<-begun).Abort()
		if err := <-failed; err == nil {
			t.Error("the body ended")
		}
		eventually(t, "it is closed", func() bool { return h.closed.Load() == 1 })
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
					h := &handler{handle: func(x *Exchange) {
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
						o.TLS = selfSigned(t)
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

func TestServer_LocalAnswersDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	eachEngine(t, func(t *testing.T, e engine) {
		fields, body := []byte("Content-Type: text/plain\r\n"), []byte("busy")
		_, addr := e.start(t, &handler{handle: func(x *Exchange) {
			x.Local.Begin(429, fields, nil)
			x.Local.Write(body)
		}}, long)
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
	s := NewServer(&handler{handle: func(x *Exchange) { answerText(x, 429, "busy") }}, Limits{}, Options{})
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
