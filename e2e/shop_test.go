package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// arrivalLog is what a shop remembers: how many requests came, and how often each order attempt did.
type arrivalLog struct {
	arrivals atomic.Int64
	mu       sync.Mutex
	serials  map[string]int // by the header Serial
}

// note writes one arrival down.
func (a *arrivalLog) note(r *http.Request) {
	a.arrivals.Add(1)
	if serial := r.Header.Get("Serial"); serial != "" {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.serials == nil {
			a.serials = map[string]int{}
		}
		a.serials[serial]++
	}
}

// seen is how often the shop got the order with this serial.
func (a *arrivalLog) seen(serial string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.serials[serial]
}

// shop is a well-behaved shop that records what reaches it.
type shop struct {
	arrivalLog
	url string
}

// open starts a shop for the length of the test; with a nil handler it answers 200 to everything.
func open(t *testing.T, handler http.HandlerFunc) *shop {
	t.Helper()
	s := &shop{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		if handler != nil {
			handler(w, r)
			return
		}
		_, _ = io.WriteString(w, "ordered") // a gate that left shows in its own answer
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// setting names the shop to a gate.
func (s *shop) setting() string { return "upstream.targets = " + quoted(s.url) }

// rogue is a shop that breaks the rules of HTTP. It records a request as soon as it has read its head and body.
type rogue struct {
	arrivalLog
	url string
}

// deed answers one request on a raw connection, or does not; it reports whether the connection stays open.
type deed func(c net.Conn, r *http.Request) (stays bool)

// misbehave starts a rogue for the length of the test.
func misbehave(t *testing.T, do deed) *rogue {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rogue{url: "http://" + ln.Addr().String()}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { ln.Close() })
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { s.serve(t, c, do) })
		}
	})
	return s
}

// serve takes one connection's requests until the deed ends it, or the test does.
func (s *rogue) serve(t *testing.T, c net.Conn, do deed) {
	defer c.Close()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-t.Context().Done():
			c.Close()
		case <-over:
		}
	}()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		s.note(r)
		if !do(c, r) {
			return
		}
	}
}

// nowhere is a target that rejects every connection: its port is taken for the length of the test, without a listener.
func nowhere(t *testing.T) (url string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}
