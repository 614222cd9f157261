package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// resting opens connections to a new server, and returns when all have asked once and rest.
func resting(t *testing.T, many int, idle time.Duration) (*Server, []net.Conn) {
	t.Helper()
	p := newProxy(t, options(&seen{}))
	s := NewServer(p, ServerOptions{MaxHeader: 16 << 10, Connections: anyNumber{}, IdleTimeout: idle, ReadHeaderTimeout: time.Minute, Log: p.log})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	t.Cleanup(func() { s.end(t) })
	all := make([]net.Conn, many)
	for i := range all {
		all[i] = dial(t, ln)
		ask(t, all[i])
	}
	for range 1000 {
		n := 0
		s.mu.Lock()
		for c := range s.open {
			if c.idle.Load() {
				n++
			}
		}
		s.mu.Unlock()
		if n == many {
			return s, all
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("not all rest")
	return nil, nil
}

func ask(t *testing.T, c net.Conn) {
	t.Helper()
	io.WriteString(c, order)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	io.Copy(io.Discard, resp.Body)
}

func TestRestingConnectionsNeedNoGoroutines(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there are no loops here")
	}
	before := runtime.NumGoroutine()
	s, all := resting(t, 100, time.Minute)
	for left := -1; ; time.Sleep(5 * time.Millisecond) {
		s.crew.mu.Lock()
		n := runtime.NumGoroutine() - len(s.crew.free) // those are for whoever asks next
		s.crew.mu.Unlock()
		if n < before+len(all)/2 {
			break
		}
		if left++; left == 1000 { // others come and go
			t.Fatalf("%d goroutines, %d before there were %d idle connections", n, before, len(all))
		}
	}
	for _, c := range all {
		ask(t, c)
	}
}

func TestDrainEndsRestingConnections(t *testing.T) {
	s, all := resting(t, 20, time.Minute)
	if cut := s.Drain(t.Context()); cut != 0 {
		t.Errorf("%d were cut off", cut)
	}
	for _, c := range all {
		if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	}
}

func TestRestEndsWithWhoeverHangsUpOrOverstays(t *testing.T) {
	s, all := resting(t, 20, 2*time.Second)
	for _, c := range all[:10] {
		c.Close()
	}
	for _, c := range all[10:] {
		if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 { // it ends when the time is over
			t.Errorf("%q, %v", rest, err)
		}
	}
	for range 1000 {
		s.mu.Lock()
		open := len(s.open)
		s.mu.Unlock()
		if open == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("connections are still there")
}

// A shop that does not answer holds up whoever waits for it, and nobody else, however few processors there are.
func TestWhoWaitsForTheShopHoldsNobodyUp(t *testing.T) {
	answer := make(chan struct{})
	p := newProxy(t, options(shopFunc(func(*Outgoing, *fasthttp.Response) Outcome {
		<-answer
		return Answered
	})))
	s := NewServer(p, ServerOptions{MaxHeader: 16 << 10, Connections: anyNumber{}, IdleTimeout: time.Minute, ReadHeaderTimeout: time.Minute, Log: p.log})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	t.Cleanup(func() { s.end(t) })
	var waiting []net.Conn
	for range 50 {
		c := dial(t, ln)
		io.WriteString(c, order)
		waiting = append(waiting, c)
	}
	for range 10 {
		c := dial(t, ln)
		io.WriteString(c, "GET /nowhere HTTP/1.1\r\n\r\n") // without a Host
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 400 {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	close(answer)
	for _, c := range waiting {
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
	}
}
