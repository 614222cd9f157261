package server

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"golang.org/x/sys/unix"

	"sluice/internal/testkit"
)

// pair is a connection from both sides.
func pair(t *testing.T, network, address string) (client, served net.Conn) {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = net.Dial(network, ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if served, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); served.Close() })
	return client, served
}

func TestConn_GoneWhenTheClientHasClosed(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"plain":          func(c net.Conn) net.Conn { return c },
		"TLS":            func(c net.Conn) net.Conn { return tls.Server(c, &tls.Config{}) },
		"PROXY protocol": func(c net.Conn) net.Conn { return proxiedConn{proxyproto.NewConn(c), c} },
	} {
		for _, network := range []string{"tcp", "unix"} {
			t.Run(name+" "+network, func(t *testing.T) {
				address := "127.0.0.1:0"
				if network == "unix" {
					address = t.TempDir() + "/s"
				}
				client, served := pair(t, network, address)
				c := &Conn{Conn: wrap(served)}
				if c.Gone() {
					t.Error("gone before anything happened")
				}
				if _, err := client.Write([]byte("GET / HTTP/1.1\r\n")); err != nil {
					t.Fatal(err)
				}
				if c.Gone() {
					t.Error("gone with a next request on its way")
				}
				client.Close()
				testkit.Eventually(t, "the client is gone", c.Gone)
			})
		}
	}
}

func TestConn_GoneOnBothEngines(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		begun, left := make(chan bool), make(chan struct{})
		_, addr := e.start(t, &handler{handle: func(x *served) {
			x.Conn.StepAside()
			begun <- x.Conn.Gone()
			testkit.Eventually(t, "the client is gone", x.Conn.Gone)
			close(left)
		}}, long)
		c := connect(t, addr)
		c.send(get())
		if <-begun {
			t.Error("gone before it left")
		}
		c.Close()
		<-left
	})
}

func TestConn_ThatIsNoSocketIsNeverGone(t *testing.T) {
	client, served := net.Pipe()
	client.Close()
	if (&Conn{Conn: served}).Gone() {
		t.Error("gone")
	}
}

// A client that does not read has the kernel keep a bounded part of its answer: the rest is the server's to keep.
func TestServer_KernelKeepsLittleForAClientThatDoesNotRead(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		body := &counted{}
		o := long
		o.WriteTimeout = 200 * time.Millisecond
		h := &handler{handle: func(x *served) { x.Forwarded.SetBodyStream(body, 64<<20) }}
		_, addr := e.start(t, h, o)
		from := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096) })
		}}
		c, err := from.DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, get()); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the connection is given up", func() bool { return h.closed.Load() == 1 })
		if n := body.n.Load(); n > 1<<20 {
			t.Errorf("%d bytes were taken from the answer's body for a client that reads nothing", n)
		}
	})
}

// counted is an endless body that knows how much was read of it.
type counted struct{ n atomic.Int64 }

func (c *counted) Read(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
