package main

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// stalling answers the n-th request of all only after a stall, and all others at once.
func stalling(t *testing.T, n int64, stall time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if asked.Add(1) == n {
			time.Sleep(stall) // the shop is slow here, no test waits
		}
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// With one connection and 100 requests a second, a stall of half a second hits the one that stalls and all that were
// due meanwhile: about 50, of which half wait for longer than a quarter of a second. A closed loop would see one.
func TestLoad_LatencyCountsFromTheInstantARequestWasDue(t *testing.T) {
	nightly(t)
	s := steady{address: stalling(t, 3, 500*time.Millisecond), request: []byte(plainRequest), perConn: 1, rate: 100,
		seconds: 1}
	took, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if took.TotalCount() != 100 {
		t.Errorf("%d of 100 were counted", took.TotalCount())
	}
	slow := 0
	for _, bar := range took.Distribution() {
		if bar.From >= int64(250*time.Millisecond) {
			slow += int(bar.Count)
		}
	}
	if slow < 20 {
		t.Errorf("%d waited for longer than a quarter of a second, want at least 20", slow)
	}
}

func TestLoad_WrongAnswersAreNoLatency(t *testing.T) {
	nightly(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.NotFoundHandler()}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	if _, err := (steady{address: l.Addr().String(), request: []byte(plainRequest), perConn: 2, rate: 200,
		seconds: 1}).run(t.Context()); err == nil {
		t.Error("404 is taken for an answer")
	}
}

func TestLoad_BrokenConnectionEndsTheRun(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(c).ReadString('\n')
			c.Close()
		}
	}()
	if _, err := (steady{address: l.Addr().String(), request: []byte(plainRequest), perConn: 2, rate: 200,
		seconds: 1}).run(t.Context()); err == nil {
		t.Error("a gate that closes every connection is measured")
	}
}

func TestLoad_BurstIsReadFromWhatWrkWrites(t *testing.T) {
	b, err := readBurst("Running 1s test\n  Non-2xx or 3xx responses: 7\nmeasured 1000 2000000 900 4100 7 1\n")
	want := burst{requests: 1000, took: 2 * time.Second, p50: 900 * time.Microsecond, p99: 4100 * time.Microsecond,
		rejected: 7, broken: 1}
	if err != nil || b != want {
		t.Errorf("got %+v, %v", b, err)
	}
	for _, text := range []string{"", "unable to connect", "measured 1 2 3"} {
		if _, err := readBurst(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestLoad_WrongAnswersAreNoMeasurement(t *testing.T) {
	pass, gone, sale := scenario{name: "pass"}, scenario{name: "gone", rejected: true}, scenario{name: "sale", mixed: true}
	for _, c := range []struct {
		s     scenario
		b     burst
		right bool
	}{
		{pass, burst{requests: 1000}, true},
		{pass, burst{requests: 1000, rejected: 500}, false},
		{pass, burst{requests: 1000, broken: 500}, false},
		{pass, burst{}, false},
		{gone, burst{requests: 1000, rejected: 999}, true},
		{gone, burst{requests: 1000}, false},
		{sale, burst{requests: 1000, rejected: 500}, true},
	} {
		if err := c.b.is(c.s); (err == nil) != c.right {
			t.Errorf("%s %+v: %v", c.s.name, c.b, err)
		}
	}
}
