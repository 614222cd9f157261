package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/testkit"
)

// suspends has each request wait for the test, which resumes them; the second time it is answered.
type suspends struct {
	mu     sync.Mutex
	resume []func()
	again  atomic.Int64
	early  bool // resumed before the handler returns
}

func (s *suspends) handle(x *served) {
	if x.Conn.Resumed() {
		s.again.Add(1)
		answerText(x, 200, string(x.Request.Target)+" "+string(x.Request.Peek("X-A")))
		return
	}
	resume := x.Conn.Suspend()
	switch {
	case resume == nil:
		answerText(x, 200, "at once "+string(x.Request.Target))
	case s.early:
		resume()
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.resume = append(s.resume, resume)
	}
}

func (s *suspends) waiting() []func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resume
}

func asks(t *testing.T, addr, text string) *bufio.Reader {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(c)
}

func hears(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b := make([]byte, 100)
	n, _ := resp.Body.Read(b)
	return string(b[:n])
}

func TestConn_SuspendedRequestIsHandledAgainAfterResume(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s := new(suspends)
		server, addr := e.start(t, &handler{handle: s.handle}, Options{})
		const n = 200
		readers := make([]*bufio.Reader, n)
		for i := range readers { // half of them close the connection behind it
			end := []string{"", "Connection: close\r\n"}[i%2]
			readers[i] = asks(t, addr, fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: a\r\nX-A: v%d\r\n%s\r\n", i, i, end))
		}
		testkit.Eventually(t, "all wait", func() bool { return len(s.waiting()) == n })
		for _, resume := range s.waiting() {
			go resume()
		}
		for i, r := range readers {
			if got, want := hears(t, r), fmt.Sprintf("/%d v%d", i, i); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		testkit.Eventually(t, "half of the connections stay", func() bool { return server.Stats().Connections == n/2 })
		if s.again.Load() != n {
			t.Errorf("handled %d times", s.again.Load())
		}
	})
}

func TestConn_ResumeBeforeTheHandlerReturnsLosesNothing(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s := &suspends{early: true}
		_, addr := e.start(t, &handler{handle: s.handle}, Options{})
		text := "GET /x HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n"
		r := asks(t, addr, text)
		if got := hears(t, r); got != "/x 1" {
			t.Errorf("%q", got)
		}
	})
}

func TestConn_SuspendedRequestKeepsALargeHead(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s := &suspends{early: true}
		_, addr := e.start(t, &handler{handle: s.handle}, Options{})
		for _, size := range []int{4000, 4090, 4097, 5000, 8000, 12_000} {
			text := fmt.Sprintf("GET /x HTTP/1.1\r\nHost: a\r\nCookie: c=%s\r\nX-A: %d\r\n\r\n", strings.Repeat("c", size), size)
			if got, want := hears(t, asks(t, addr, text)), fmt.Sprintf("/x %d", size); got != want {
				t.Errorf("%d bytes of cookies: %q, want %q", size, got, want)
			}
		}
	})
}

// Behind a request that waits the next one is not read; one that came along with it lets it wait no more.
func TestConn_PipelinedRequestsAreAnsweredInTheirOrder(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s := new(suspends)
		_, addr := e.start(t, &handler{handle: s.handle}, Options{})
		one := "GET /%s HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n"
		r := asks(t, addr, fmt.Sprintf(one, "a")+fmt.Sprintf(one, "b"))
		if got := hears(t, r); got != "at once /a" {
			t.Errorf("%q", got)
		}
		testkit.Eventually(t, "the second one waits", func() bool { return len(s.waiting()) == 1 })
		s.waiting()[0]()
		if got := hears(t, r); got != "/b 1" {
			t.Errorf("%q", got)
		}
	})
}

func TestConn_RequestWithABodyOrSuspendedBeforeCannotWait(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s := new(suspends)
		_, addr := e.start(t, &handler{handle: s.handle}, Options{})
		r := asks(t, addr, "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
		if got := hears(t, r); got != "at once /p" {
			t.Errorf("%q", got)
		}
	})
}
