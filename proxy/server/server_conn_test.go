package server

import (
	"crypto/tls"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/testkit"
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
		testkit.Eventually(t, "the connection is closed", func() bool {
			return h.closed.Load() == 1 &&
				s.Stats().Connections == 0
		})
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

func TestServer_ConnectionThatWaitedServesItsNextRequest(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s, addr := e.start(t, &handler{}, long)
		c := connect(t, addr)
		for range 3 {
			testkit.Eventually(t, "the connection is idle", func() bool { return s.inPhase(phaseIdle) == 1 })
			c.send(order[:1]) // the first byte comes alone
			c.send(order[1:])
			c.expect(200, "POST /a "+order[strings.Index(order, "\r\n\r\n")+4:])
		}
	})
}

func TestServer_ServesTLSAndUnixSockets(t *testing.T) {
	h := &handler{handle: func(x *served) {
		answerText(x, 200, fmt.Sprintf("%v %v %d", x.Conn.Secure(), x.Conn.Peer(), x.Conn.Requests()))
	}}
	o := long
	o.TLS = testkit.SelfSigned(t)
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
	testkit.Nightly(t, "it counts goroutines")
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
	testkit.Eventually(t, "all are idle", func() bool { return s.inPhase(phaseIdle) == many })
	testkit.Eventually(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() < before+many })
}

func TestServer_IdleConnectionEndsWithoutAWord(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		h := &handler{}
		send := opensWhenSent(h)
		_, addr := e.start(t, h, Options{IdleTimeout: 100 * time.Millisecond, ReadHeaderTimeout: time.Second})
		for _, first := range []string{"", get(), "\r\n"} {
			if got := send(t, addr, first); strings.Count(got, "HTTP/1.1") != strings.Count(first, "GET") {
				t.Errorf("after %q: %q", first, got)
			}
		}
		testkit.Eventually(t, "all are closed", func() bool { return h.closed.Load() == 3 })
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
		testkit.Eventually(t, "all are closed", func() bool { return h.closed.Load() == 20 && s.Stats().Connections == 0 })
	})
}
