package server

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"sluice/internal/testkit"
)

const upgradeRequest = "GET /chat HTTP/1.1\r\nHost: s\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo/1\r\n\r\n"

// upgrading answers 101 and joins the client with what dial returns.
func upgrading(dial func() net.Conn) func(*served) {
	return func(x *served) {
		if !x.Request.Upgrade {
			answerText(x, 200, "no upgrade")
			return
		}
		x.Conn.StepAside()
		upstream := dial()
		x.Forwarded.SetStatusCode(101)
		x.Forwarded.Header.Set("Connection", "Upgrade")
		x.Forwarded.Header.Set("Upgrade", "echo/1")
		x.Conn.Tunnel(upstream)
	}
}

// echoing is an upstream that returns all that it is sent.
func echoing(t *testing.T) net.Conn {
	near, far := tcpPair(t)
	go func() {
		_, _ = io.Copy(far, far)
		far.Close()
	}()
	return near
}

func tcpPair(t *testing.T) (near, far net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if near, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

func TestTunnel_JoinsBothWaysUntilBothEnd(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		for _, adopt := range []bool{false, true} {
			h := &handler{}
			s, addr := e.start(t, h, long)
			h.handle = upgrading(func() net.Conn {
				c := echoing(t)
				if adopt {
					c = s.Adopt(c)
				}
				return c
			})
			c := connect(t, addr)
			c.send(upgradeRequest + "GET / HTTP/1.1\nnot checked")
			resp, err := http.ReadResponse(c.in, nil)
			if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "echo/1" ||
				resp.Header.Get("Connection") != "Upgrade" {
				t.Fatalf("%v, %v", resp, err)
			}
			c.send(" more")
			if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if all := c.rest(); all != "GET / HTTP/1.1\nnot checked more" {
				t.Errorf("%q", all)
			}
			testkit.Eventually(t, "it is closed", func() bool { return h.closed.Load() == 1 })
		}
	})
}

// closing tells when the upstream's end of a tunnel is closed.
type closing struct {
	net.Conn
	closed chan struct{}
}

func (c closing) Close() error {
	c.closed <- struct{}{}
	return c.Conn.Close()
}

func TestTunnel_UpstreamIsClosedWhenTheClientLeftBefore(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		asked, goOn, closed := make(chan struct{}), make(chan struct{}), make(chan struct{}, 10)
		_, addr := e.start(t, &handler{handle: upgrading(func() net.Conn {
			asked <- struct{}{}
			<-goOn
			near, _ := net.Pipe()
			return closing{near, closed}
		})}, long)
		c := connect(t, addr)
		c.send(upgradeRequest)
		<-asked
		c.reset() // the answer cannot be written
		goOn <- struct{}{}
		<-closed
	})
}

// A handler that fails behind Tunnel answers 500: the client and the upstream are not joined.
func TestTunnel_AnotherAnswerThan101EndsTheUpstream(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		closed := make(chan struct{}, 10)
		join := upgrading(func() net.Conn {
			near, _ := tcpPair(t)
			return closing{near, closed}
		})
		_, addr := e.start(t, &handler{handle: func(x *served) {
			join(x)
			answerText(x, 500, "failed")
		}}, long)
		c := connect(t, addr)
		c.send(upgradeRequest)
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil || resp.StatusCode != 500 || !resp.Close {
			t.Fatalf("%v, %v", resp, err)
		}
		<-closed
	})
}

func TestTunnel_FaultOnOneSideEndsBoth(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		for _, idle := range []time.Duration{0, time.Hour} { // no time-out would end it
			closed := make(chan struct{}, 10)
			_, addr := e.start(t, &handler{handle: upgrading(func() net.Conn {
				near, _ := tcpPair(t) // whose other side neither reads nor writes
				return closing{near, closed}
			})}, Options{IdleTimeout: idle})
			c := connect(t, addr)
			c.send(upgradeRequest)
			if resp, err := http.ReadResponse(c.in, nil); err != nil || resp.StatusCode != 101 {
				t.Fatalf("%v, %v", resp, err)
			}
			c.reset()
			<-closed
		}
	})
}

func TestTunnel_EndsWhenNeitherSideSpeaks(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		closed := make(chan struct{}, 10)
		_, addr := e.start(t, &handler{handle: upgrading(func() net.Conn {
			near, _ := tcpPair(t)
			return closing{near, closed}
		})}, Options{IdleTimeout: 50 * time.Millisecond})
		c := connect(t, addr)
		c.send(upgradeRequest)
		<-closed
	})
}
