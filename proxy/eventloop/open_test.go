//go:build linux && !noeventloop

package eventloop

import (
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// testTimeout ends a test that hangs.
const testTimeout = 30 * time.Second

// openGroup opens a group that is closed at the end of the test. Then no goroutine is left.
func openGroup(t testing.TB, o Options) *Group {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { eventually(t, func() bool { return goleak.Find(before) == nil }) })
	if o.Expire == nil {
		o.Expire = func(c *Conn) { c.Close() }
	}
	if o.Serve == nil {
		o.Serve = func(c *Conn) { c.Close() }
	}
	g, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// listen returns a listener of g.
func listen(t testing.TB, g *Group) net.Listener {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := g.Listen(tcp.(*net.TCPListener))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// openServer returns a listener of a new group; its connections wait.
func openServer(t testing.TB, o Options) net.Listener {
	t.Helper()
	ln := listen(t, openGroup(t, o))
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if waiting, err := c.(*Conn).Wait(time.Minute); err != nil || !waiting {
				t.Errorf("a new connection: waiting %v, %v", waiting, err)
			}
		}
	}()
	return ln
}

// echo writes back what came, in pieces of up to size bytes, and waits again.
func echo(c *Conn, size int) {
	buf := make([]byte, size)
	for {
		n, err := c.TryRead(buf)
		if err == nil && n > 0 {
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			c.Close()
			return
		}
		if waiting, err := c.Wait(time.Minute); waiting || err != nil {
			return
		}
	}
}

func dial(t testing.TB, ln net.Listener) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testTimeout))
	return c.(*net.TCPConn)
}

// pair returns the two ends of a connection that belongs to no group.
func pair(t testing.TB) (near, far *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far = dial(t, ln)
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn), far
}

// adopt returns a connection of g, and its other end.
func adopt(t testing.TB, g *Group) (*Conn, *net.TCPConn) {
	t.Helper()
	near, far := pair(t)
	c, err := g.Adopt(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, far
}

// exchange sends text and expects it back.
func exchange(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	expect(t, c, text)
}

// expect reads text.
func expect(t testing.TB, c net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v; want %q", got, err, text)
	}
}

// receive returns the next value of ch.
func receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(testTimeout):
		t.Fatal("nothing happens")
		panic("unreachable")
	}
}

// awaitParked returns when a goroutine is parked for d of c.
func awaitParked(t testing.TB, c *Conn, d *direction) {
	t.Helper()
	eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return d.parked
	})
}

// eventually polls for a state that no event reports.
func eventually(t testing.TB, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !reached(); time.Sleep(100 * time.Microsecond) { // no event tells
		if time.Now().After(end) {
			t.Fatal("the state is not reached")
		}
	}
}
