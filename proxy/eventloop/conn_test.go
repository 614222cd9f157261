//go:build linux && !noeventloop

package eventloop

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Bytes come in pieces larger and smaller than the buffer, on many connections, and return whole.
func TestConn_ServesEverythingThatComes(t *testing.T) {
	for _, size := range []int{1, 7, 4096} {
		ln := openServer(t, Options{Serve: func(c *Conn) { echo(c, size) }})
		var all []net.Conn
		for range 20 {
			all = append(all, dial(t, ln))
		}
		for i := range 10 {
			for _, c := range all {
				exchange(t, c, string(bytes.Repeat([]byte{byte('a' + i)}, 1+13*i)))
			}
		}
		var both sync.WaitGroup
		for _, c := range all {
			both.Go(func() {
				text := bytes.Repeat([]byte("0123456789"), min(50*size, 10_000))
				both.Go(func() { c.Write(text) })
				got := make([]byte, len(text))
				if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, text) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
		both.Wait()
	}
}

// The last bytes of a peer and its end may be one event.
func TestConn_ReadsEndAfterLastBytes(t *testing.T) {
	ln := openServer(t, Options{Serve: func(c *Conn) { echo(c, 4096) }})
	for range 200 {
		c := dial(t, ln)
		io.WriteString(c, "last")
		c.CloseWrite()
		if got, err := io.ReadAll(c); err != nil || string(got) != "last" {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// A callee that blocks does not block the loop: with StepAside at once, without it after some ticks.
func TestConn_StepAsideFreesTheLoop(t *testing.T) {
	for _, stepsAside := range []bool{true, false} {
		const blocked = 5
		release, blocks := make(chan struct{}), make(chan struct{}, blocked)
		var served atomic.Int32
		ln := openServer(t, Options{Loops: 1, Serve: func(c *Conn) {
			if served.Add(1) <= blocked {
				if stepsAside {
					c.StepAside()
				}
				blocks <- struct{}{}
				<-release
			}
			echo(c, 16)
		}})
		var all []net.Conn
		for range blocked {
			c := dial(t, ln)
			io.WriteString(c, "w")
			all = append(all, c)
		}
		for range blocked {
			receive(t, blocks)
		}
		exchange(t, dial(t, ln), "x")
		close(release)
		for _, c := range all {
			expect(t, c, "w")
			exchange(t, c, "y")
		}
	}
}

// serveOnce calls act on a connection that is served, and returns the peer and the result.
func serveOnce(t *testing.T, act func(*Conn) error) (*net.TCPConn, error) {
	t.Helper()
	results := make(chan error, 1)
	ln := openServer(t, Options{Serve: func(c *Conn) {
		var first [1]byte
		c.TryRead(first[:])
		err := act(c)
		c.Close()
		results <- err
	}})
	c := dial(t, ln)
	io.WriteString(c, "x")
	return c, receive(t, results)
}

// maxSocketBuffers is more than the kernel buffers in both ends of a connection.
const maxSocketBuffers = 64 << 20

func TestConn_DeadlineEndsReadAndWrite(t *testing.T) {
	for name, act := range map[string]func(*Conn) error{
		"read": func(c *Conn) error {
			c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			_, err := c.Read(make([]byte, 1))
			return err
		},
		"read after the deadline": func(c *Conn) error {
			c.SetReadDeadline(time.Unix(1, 0))
			_, err := c.Read(make([]byte, 1))
			return err
		},
		"write": func(c *Conn) error {
			c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			_, err := c.Write(make([]byte, maxSocketBuffers))
			return err
		},
		"deadline is set while the read is parked": func(c *Conn) error {
			var set sync.WaitGroup
			defer set.Wait()
			set.Go(func() {
				awaitParked(t, c, &c.in)
				c.SetDeadline(time.Unix(1, 0))
			})
			_, err := c.Read(make([]byte, 1))
			return err
		},
		"deadline is brought forward": func(c *Conn) error {
			c.SetReadDeadline(time.Now().Add(time.Hour))
			var set sync.WaitGroup
			defer set.Wait()
			set.Go(func() {
				awaitParked(t, c, &c.in)
				c.SetReadDeadline(time.Now().Add(time.Millisecond))
			})
			_, err := c.Read(make([]byte, 1))
			return err
		},
	} {
		if _, err := serveOnce(t, act); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConn_CloseEndsReadWriteAndWait(t *testing.T) {
	many := make([]byte, maxSocketBuffers)
	closeParked := func(c *Conn, d *direction, call func() error) error {
		var closed sync.WaitGroup
		defer closed.Wait()
		closed.Go(func() {
			awaitParked(t, c, d)
			c.Close()
		})
		return call()
	}
	for name, act := range map[string]func(*Conn) error{
		"read": func(c *Conn) error {
			return closeParked(c, &c.in, func() error { _, err := c.Read(make([]byte, 1)); return err })
		},
		"write": func(c *Conn) error {
			return closeParked(c, &c.out, func() error { _, err := c.Write(many); return err })
		},
		"wait": func(c *Conn) error {
			c.Close()
			waiting, err := c.Wait(time.Minute)
			if waiting {
				t.Error("a closed connection waits")
			}
			return err
		},
		"second close":   func(c *Conn) error { c.Close(); return c.Close() },
		"deadline":       func(c *Conn) error { c.Close(); return c.SetDeadline(time.Time{}) },
		"try to read":    func(c *Conn) error { c.Close(); _, err := c.TryRead(make([]byte, 1)); return err },
		"end of writing": func(c *Conn) error { c.Close(); return c.CloseWrite() },
	} {
		if _, err := serveOnce(t, act); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A write that is larger than all buffers parks, and goes on when the peer reads.
func TestConn_WriteReturnsWhenAllIsWritten(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), maxSocketBuffers/16)
	done := make(chan error, 1)
	ln := openServer(t, Options{Loops: 1, Serve: func(c *Conn) {
		c.TryRead(make([]byte, 16)) // a close with unread bytes would reset the connection
		n, err := c.Write(text)
		if n != len(text) {
			t.Errorf("%d of %d bytes are written", n, len(text))
		}
		c.Close()
		done <- err
	}})
	c := dial(t, ln)
	io.WriteString(c, "x")
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes came, want %d; %v", len(got), len(text), err)
	}
	if err := receive(t, done); err != nil {
		t.Error(err)
	}
}

func TestConn_CloseWriteSendsTheEnd(t *testing.T) {
	c, err := serveOnce(t, func(c *Conn) error {
		if c.RemoteAddr().String() == c.LocalAddr().String() {
			t.Errorf("it is at %s, from %s", c.LocalAddr(), c.RemoteAddr())
		}
		c.Write([]byte("end"))
		return c.CloseWrite()
	})
	if got, readErr := io.ReadAll(c); err != nil || readErr != nil || string(got) != "end" {
		t.Errorf("%v; %q, %v", err, got, readErr)
	}
}

func TestConn_ControlKeepsTheDescriptorOpen(t *testing.T) {
	_, err := serveOnce(t, func(c *Conn) error {
		raw, err := c.SyscallConn()
		if err != nil {
			return err
		}
		err = raw.Control(func(fd uintptr) {
			c.Close()
			if _, err := os.Stat("/proc/self/fd/" + strconv.Itoa(int(fd))); err != nil {
				t.Error(err)
			}
		})
		if raw.Control(func(uintptr) { t.Error("a closed connection has a descriptor") }) == nil {
			t.Error("no error after Close")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A wait ends after Expedite, and the connection belongs to Expire.
func TestConn_ExpediteExpiresTheWait(t *testing.T) {
	expired, served := make(chan *Conn, 1), make(chan *Conn, 1)
	ln := openServer(t, Options{Loops: 1, Serve: func(c *Conn) {
		served <- c
		echo(c, 16)
	}, Expire: func(c *Conn) { c.Close(); expired <- c }})
	peer := dial(t, ln)
	exchange(t, peer, "x")
	c := receive(t, served)
	eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.waiting })
	c.Expedite(time.Millisecond)
	if receive(t, expired) != c {
		t.Error("another connection expired")
	}
	if got, err := io.ReadAll(peer); err != nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
}

// After Reclaim neither Serve nor Expire is called.
func TestConn_ReclaimEndsTheWait(t *testing.T) {
	g := openGroup(t, Options{Serve: func(*Conn) { t.Error("served") }, Expire: func(*Conn) { t.Error("expired") }})
	c, peer := adopt(t, g)
	if c.Reclaim() {
		t.Error("it did not wait")
	}
	if waiting, err := c.Wait(time.Millisecond); !waiting {
		t.Fatal(err)
	}
	if !c.Reclaim() {
		t.Fatal("it does not wait")
	}
	io.WriteString(peer, "x")
	c.SetReadDeadline(time.Now().Add(testTimeout))
	expect(t, c, "x")
}

// A descriptor number is used again at once. Bytes for one connection never reach another.
func TestConn_ReusedDescriptorKeepsConnectionsApart(t *testing.T) {
	var closers sync.WaitGroup
	defer closers.Wait()
	ln := openServer(t, Options{Serve: func(c *Conn) {
		closers.Go(func() { runtime.Gosched(); c.Close() }) // while it is served
		echo(c, 16)
	}})
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			name := string(rune('a' + i))
			for range 100 {
				c, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				c.SetDeadline(time.Now().Add(testTimeout))
				for range 5 {
					io.WriteString(c, name)
				}
				if got, _ := io.ReadAll(c); len(bytes.Trim(got, name)) > 0 {
					t.Errorf("%s read %q", name, got)
				}
				c.Close()
			}
		})
	}
	clients.Wait()
}

// A first wait after a read that left something behind is served as any other.
func TestConn_FirstWaitAfterFullRead(t *testing.T) {
	served := make(chan byte, 1)
	ln := listen(t, openGroup(t, Options{Serve: func(c *Conn) {
		var b [1]byte
		c.TryRead(b[:])
		c.Close()
		served <- b[0]
	}}))
	peer := dial(t, ln)
	io.WriteString(peer, "x")
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := nc.(*Conn)
	expect(t, c, "x")
	if waiting, _ := c.Wait(time.Minute); waiting {
		t.Error("it waits, although the read filled its buffer")
	}
	if n, err := c.TryRead(make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if waiting, err := c.Wait(time.Minute); !waiting {
		t.Fatal(err)
	}
	io.WriteString(peer, "y")
	if b := receive(t, served); b != 'y' {
		t.Errorf("served %q", b)
	}
}

// Calls that do not block do not allocate.
func TestConn_DoesNotAllocate(t *testing.T) {
	g := openGroup(t, Options{Serve: func(*Conn) {}})
	c, peer := adopt(t, g)
	buf, small := make([]byte, 16), make([]byte, 16)
	c.SetDeadline(time.Now().Add(time.Hour))
	peer.SetDeadline(time.Time{})
	for name, call := range map[string]func(){
		"Write":           func() { c.Write(small[:1]) },
		"TryRead, empty":  func() { c.TryRead(buf) },
		"TryRead":         func() { peer.Write(small[:1]); c.TryRead(buf) },
		"Read":            func() { peer.Write(small[:1]); c.Read(buf) },
		"Wait":            func() { c.TryRead(buf); c.Wait(time.Minute); c.Reclaim() },
		"SetReadDeadline": func() { c.SetReadDeadline(time.Now().Add(time.Hour)) },
	} {
		if n := testing.AllocsPerRun(100, call); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
