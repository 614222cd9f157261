package server

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
)

func TestServer_BrokenBodyIsCountedOnce(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		h := &handler{handle: func(x *served) {
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

func TestConn_InterimResponseComesBeforeTheAnswer(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		const hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
		_, addr := e.start(t, &handler{handle: func(x *served) {
			x.Conn.Interim([]byte(hints))
			answerText(x, 200, "fine")
		}}, long)
		all := converse(t, addr, get()+get("Connection: close"))
		if strings.Count(all, hints+"HTTP/1.1 200 ") != 2 || !strings.HasSuffix(all, "fine") {
			t.Errorf("%q", all)
		}
		if all := converse(t, addr, "GET /a HTTP/1.0\r\nHost: s\r\n\r\n"); strings.Contains(all, " 103 ") {
			t.Errorf("a client of HTTP/1.0 hears %q", all)
		}
	})
}

// stalled is a connection to whose interim responses the process comes only when their time is over.
type stalled struct {
	net.Conn
	until time.Time // of writing
}

func (c *stalled) SetWriteDeadline(t time.Time) error {
	c.until = t
	return c.Conn.SetWriteDeadline(t)
}

func (c *stalled) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("HTTP/1.1 103 ")) {
		time.Sleep(time.Until(c.until)) // as long as a stall must be, to matter
	}
	return c.Conn.Write(p)
}

type stalledListener struct{ net.Listener }

func (l stalledListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stalled{Conn: c}, nil
}

func TestConn_AnswerComesThoughItsInterimResponseCameTooLate(t *testing.T) {
	e := engine(func(ln net.Listener) net.Listener { return stalledListener{ln} })
	_, addr := e.start(t, &handler{handle: func(x *served) {
		x.Conn.Interim([]byte("HTTP/1.1 103 Early Hints\r\n\r\n"))
		answerText(x, 200, "fine")
	}}, long)
	if all := converse(t, addr, get("Connection: close")); !strings.HasSuffix(all, "fine") {
		t.Errorf("%q", all)
	}
}

// A client that does not take it is closed: behind a part of it no answer could be read.
func TestConn_InterimResponseNeverWaitsForLong(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		done := make(chan struct{})
		_, addr := e.start(t, &handler{handle: func(x *served) {
			defer close(done)
			head := []byte("HTTP/1.1 103 Early Hints\r\nLink: " + strings.Repeat("a", 32<<20) + "\r\n\r\n")
			x.Conn.Interim(head)
			answerText(x, 200, "fine")
		}}, long)
		c := connect(t, addr)
		c.send(get())
		<-done
		if all := c.rest(); strings.Contains(all, "fine") {
			t.Error("an answer follows a part of an interim response")
		}
	})
}

// A head that came along with the request before it has its own time for the rest, and its own 100.
func TestServer_PipelinedBodyIsAskedForToo(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		begun := make(chan struct{}, 2)
		_, addr := e.start(t, &handler{handle: func(x *served) { begun <- struct{}{}; echo(x) }}, long)
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

func TestConn_BodyIsAskedForOnlyWhenItIsRead(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		_, addr := e.start(t, &handler{handle: func(x *served) {
			if string(x.Request.Path) == "/no" {
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
				_, addr := e.start(t, &handler{handle: func(x *served) {
					switch path := string(x.Request.Path); {
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
		_, addr := e.start(t, &handler{handle: func(x *served) {
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
		_, addr := e.start(t, &handler{handle: func(x *served) { answerText(x, 200, string(x.Request.Path)) }}, long)
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
		h := &handler{handle: func(x *served) {
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
		testkit.Eventually(t, "it is closed", func() bool { return h.closed.Load() == 1 })
	})
}
