//go:build linux && !noeventloop

package eventloop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// serveRandomly serves a connection on the loop, or in another goroutine after StepAside.
func serveRandomly(c *Conn, closed *atomic.Int64) {
	if rand.IntN(4) == 0 {
		c.StepAside()
		go echoRandomly(c, closed)
		return
	}
	echoRandomly(c, closed)
}

// echoRandomly writes back what comes, in pieces of any size, and waits again.
func echoRandomly(c *Conn, closed *atomic.Int64) {
	buf := make([]byte, []int{1, 5, 16, 100, 4096}[rand.IntN(5)])
	for {
		var n int
		var err error
		for first := true; first || rand.IntN(3) == 0 && err == nil; first = false {
			if n, err = c.TryRead(buf); n > 0 {
				_, err = c.Write(buf[:n])
			}
			if err == nil && n > 0 && rand.IntN(10) == 0 { // as for a request head that comes in pieces
				c.SetReadDeadline(time.Now().Add(time.Millisecond))
				if n, err = c.Read(buf); n > 0 {
					_, err = c.Write(buf[:n])
				} else if os.IsTimeout(err) {
					err = nil
				}
			}
		}
		switch rand.IntN(100) {
		case 0:
			time.Sleep(time.Millisecond) // a callee that blocks
		case 1:
			c.StepAside()
			time.Sleep(time.Millisecond) // one that says so
		}
		waiting := false
		if err == nil {
			waiting, err = c.Wait(time.Minute)
		}
		if err != nil {
			closeOnce(c, closed)
		}
		if waiting || err != nil {
			return
		}
	}
}

// closeOnce closes c, and counts if no other goroutine did before.
func closeOnce(c *Conn, closed *atomic.Int64) {
	if c.Close() == nil {
		closed.Add(1)
	}
}

// However a connection is served, and whatever else closes it meanwhile: bytes come back whole, on the same
// connection, and no descriptor is left.
func TestConn_ServedRandomlyLosesNothing(t *testing.T) { serveModels(t, 2) }

func TestConn_ServedRandomlyForLongLosesNothing(t *testing.T) {
	testkit.Nightly(t, "it takes ten times as long")
	serveModels(t, 20)
}

// serveModels has each client visit so often.
func serveModels(t *testing.T, visits int) {
	for _, loops := range []int{1, 3} {
		for _, disturbed := range []bool{false, true} {
			t.Run(fmt.Sprint(loops, disturbed), func(t *testing.T) {
				before := countDescriptors()
				runModel(t, loops, visits, disturbed)
				eventually(t, func() bool { return countDescriptors() <= before+4 })
			})
		}
	}
}

func countDescriptors() int {
	all, _ := os.ReadDir("/proc/self/fd")
	return len(all)
}

func runModel(t *testing.T, loops, visits int, disturbed bool) {
	var accepted, closed atomic.Int64
	var known sync.Map
	g, err := Open(Options{
		Loops:  loops,
		Serve:  func(c *Conn) { serveRandomly(c, &closed) },
		Expire: func(c *Conn) { closeOnce(c, &closed) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ln := listen(t, g)
	defer ln.Close()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			c := nc.(*Conn)
			accepted.Add(1)
			known.Store(c, true)
			if waiting, err := c.Wait(time.Minute); err != nil || !waiting {
				closeOnce(c, &closed)
			}
		}
	}()
	var stop atomic.Bool
	var disturber, clients sync.WaitGroup
	if disturbed {
		disturber.Go(func() {
			for ; !stop.Load(); time.Sleep(time.Millisecond) { // so that most connections live for a while
				known.Range(func(k, _ any) bool { disturb(k.(*Conn), &known, &closed); return true })
			}
		})
	}
	for i := range 40 {
		clients.Go(func() {
			for n := range visits {
				runClient(t, ln, fmt.Sprintf("%02d.%04d;", i, n), disturbed)
			}
		})
	}
	clients.Wait()
	stop.Store(true)
	disturber.Wait()
	eventually(t, func() bool { return accepted.Load() == closed.Load() })
	for _, l := range g.loops {
		eventually(t, func() bool { return countConns(l) == 0 })
	}
}

// disturb does to a connection what a drain does.
func disturb(c *Conn, known *sync.Map, closed *atomic.Int64) {
	switch rand.IntN(20) {
	case 0:
		c.Expedite(time.Millisecond)
	case 1:
		if c.Reclaim() {
			closeOnce(c, closed)
		}
	case 2:
		closeOnce(c, closed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		known.Delete(c)
	}
}

func countConns(l *loop) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		if c != nil {
			n++
		}
	}
	return n
}

// runClient sends repetitions of tag in random pieces, and checks what comes back. It ends the connection in a
// random way.
func runClient(t *testing.T, ln net.Listener, tag string, disturbed bool) {
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Error(err)
		return
	}
	c := nc.(*net.TCPConn)
	c.SetDeadline(time.Now().Add(testTimeout))
	text := bytes.Repeat([]byte(tag), 1+rand.IntN(100))
	if rand.IntN(20) == 0 {
		text = bytes.Repeat([]byte(tag), 20_000/len(tag))
	}
	half, reset := rand.IntN(2) == 0, rand.IntN(8) == 0
	var sender sync.WaitGroup
	sender.Go(func() {
		sendInPieces(c, text, rand.IntN(2) == 0)
		if half {
			c.CloseWrite()
		}
	})
	want := len(text)
	if reset {
		want = rand.IntN(want)
	}
	got := make([]byte, want)
	k, err := io.ReadFull(c, got)
	if errors.Is(err, os.ErrDeadlineExceeded) || !disturbed && err != nil {
		t.Errorf("%s: %d of %d: %v", tag, k, len(got), err)
	}
	if !bytes.Equal(got[:k], text[:k]) {
		t.Errorf("%s: bytes of another connection: %.60q", tag, got[:k])
	}
	if half && !reset && err == nil {
		if rest, err := io.ReadAll(c); !disturbed && err != nil || len(rest) > 0 {
			t.Errorf("%s: after the end: %.60q, %v", tag, rest, err)
		}
	}
	if reset {
		c.SetLinger(0)
	}
	c.Close()
	sender.Wait()
}

// sendInPieces writes text, in pieces of random sizes at random times if slowly is set.
func sendInPieces(c net.Conn, text []byte, slowly bool) {
	for len(text) > 0 {
		k := len(text)
		if slowly {
			k = 1 + rand.IntN(min(k, 20+k/4))
		}
		if _, err := c.Write(text[:k]); err != nil {
			return
		}
		text = text[k:]
		if slowly && rand.IntN(10) == 0 {
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Microsecond) // the model is slow at random
		}
	}
}
