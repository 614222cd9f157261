package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"
)

// garaged opens connections to a new server, and returns when all have asked once and are parked.
func garaged(t *testing.T, many int, idle time.Duration) (*Server, []net.Conn) {
	t.Helper()
	p := newProxy(t, options(&seen{}))
	s := NewServer(p, ServerOptions{MaxHeader: 16 << 10, Connections: anyNumber{}, IdleTimeout: idle, ReadHeaderTimeout: time.Minute, Log: p.log})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	t.Cleanup(func() { s.Drain(t.Context()) })
	all := make([]net.Conn, many)
	for i := range all {
		all[i] = dial(t, ln)
		ask(t, all[i])
	}
	for range 1000 {
		s.garage.mu.Lock()
		n := len(s.garage.parked)
		s.garage.mu.Unlock()
		if n == many {
			return s, all
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("not all are parked")
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

func TestParkedConnectionsNeedNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	s, all := garaged(t, 100, time.Minute)
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

func TestDrainEndsParkedConnections(t *testing.T) {
	s, all := garaged(t, 20, time.Minute)
	if cut := s.Drain(t.Context()); cut != 0 {
		t.Errorf("%d were cut off", cut)
	}
	for _, c := range all {
		if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	}
}

func TestGarageLetsGoOfWhoeverHangsUpOrOverstays(t *testing.T) {
	s, all := garaged(t, 20, 2*time.Second)
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
		s.garage.mu.Lock()
		open, guarded := len(s.open), s.garage.parked != nil
		s.garage.mu.Unlock()
		s.mu.Unlock()
		if open == 0 && !guarded {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("connections or the guard are still there")
}
