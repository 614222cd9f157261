package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// model answers with what it was asked for, sometimes late, sometimes at length, in each form that an answer has.
func model(x *served) {
	c, target := x.Conn, string(x.Request.Target)
	if strings.HasPrefix(target, "/skip/") {
		c.SkipBody()
		answerText(x, 409, target)
		return
	}
	if !strings.HasPrefix(target, "/local/") {
		c.StepAside()
	}
	body, err := bodyOf(c)
	if err != nil {
		answerText(x, 400, err.Error())
		c.CloseAfterResponse()
		return
	}
	if strings.Contains(target, "late") {
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond) // the model is slow at random
	}
	text := []byte(target + "|" + string(body) + "|")
	if strings.Contains(target, "large") {
		text = bytes.Repeat(text, 100_000/len(text))
	}
	switch {
	case strings.HasPrefix(target, "/local/"):
		answerText(x, 200, string(text))
	case strings.Contains(target, "stream"):
		x.Forwarded.SetBodyStream(bytes.NewReader(text), len(text))
	case strings.Contains(target, "chunks"):
		x.Forwarded.SetBodyStream(io.MultiReader(bytes.NewReader(text[:1]), bytes.NewReader(text[1:])), -1)
	default:
		x.Forwarded.SetBody(text)
	}
}

// visitor is one connection's script: what is sent, and the answers that are due.
type visitor struct {
	raw  bytes.Buffer
	want []func(*http.Response, []byte) error
	last bool
}

func (v *visitor) expect(status int, body func([]byte) bool) {
	v.want = append(v.want, func(r *http.Response, got []byte) error {
		if r.StatusCode != status || body != nil && !body(got) {
			return fmt.Errorf("answered %d %.120q (%d)", r.StatusCode, got, len(got))
		}
		return nil
	})
}

func (v *visitor) ask(id string, r *rand.Rand) {
	if v.last {
		return
	}
	size := r.IntN(3) * r.IntN(500)
	if r.IntN(8) == 0 {
		size = r.IntN(60_000)
	}
	body := strings.Repeat("b", size)
	end := "\r\n"
	if r.IntN(15) == 0 {
		end, v.last = "Connection: close\r\n\r\n", true
	}
	kind := []string{"", "late/", "large/", "late/stream/", "large/stream/", "large/chunks/", "local/",
		"local/large/"}[r.IntN(8)]
	if r.IntN(2) == 0 {
		kind = ""
	}
	head := "Host: s\r\nX-Pad: " + strings.Repeat("p", []int{0, 10, 1000, 3000, 5000}[r.IntN(5)]) + "\r\n"
	target := "/" + kind + id
	due := func(body string) func([]byte) bool {
		one := target + "|" + body + "|"
		if strings.Contains(kind, "large") {
			one = strings.Repeat(one, 100_000/len(one))
		}
		return func(got []byte) bool { return string(got) == one }
	}
	switch r.IntN(4) {
	case 0:
		fmt.Fprintf(&v.raw, "GET %s HTTP/1.1\r\n%s%s", target, head, end)
		v.expect(200, due(""))
	case 1:
		fmt.Fprintf(&v.raw, "POST %s HTTP/1.1\r\n%sContent-Length: %d\r\n%s%s", target, head, len(body), end, body)
		v.expect(200, due(body))
	case 2:
		fmt.Fprintf(&v.raw, "POST %s HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n%s", target, head, end)
		for rest := body; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			fmt.Fprintf(&v.raw, "%x\r\n%s\r\n", n, rest[:n])
			rest = rest[n:]
		}
		v.raw.WriteString("0\r\n\r\n")
		v.expect(200, due(body))
	case 3: // rejected, with a short body that is dropped
		body = body[:min(len(body), 900)]
		fmt.Fprintf(&v.raw, "POST /skip/%s HTTP/1.1\r\n%sContent-Length: %d\r\n%s%s", id, head, len(body), end, body)
		v.expect(409, func(b []byte) bool { return string(b) == "/skip/"+id })
	}
}

func (v *visitor) visit(addr string, r *rand.Rand) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	tcp := c.(*net.TCPConn)
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	raw := v.raw.Bytes()
	rude := r.IntN(4) == 0
	if rude {
		raw = raw[:r.IntN(len(raw)+1)]
	}
	whole := r.IntN(2) == 0
	half, slow := !rude && r.IntN(3) == 0, r.IntN(8) == 0
	reset := r.IntN(2) == 0
	sent := make(chan error, 1)
	go func() {
		rest := raw
		for len(rest) > 0 {
			n := len(rest)
			if !whole {
				n = 1 + r.IntN(min(len(rest), []int{1, 100, 4096, 10000}[r.IntN(4)]))
				if len(rest) > 100_000 {
					n = len(rest) / 2
				}
			}
			if _, err := c.Write(rest[:n]); err != nil {
				sent <- err
				return
			}
			rest = rest[n:]
			if r.IntN(12) == 0 {
				time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond) // the model is slow at random
			}
		}
		if half {
			tcp.CloseWrite()
		}
		sent <- nil
	}()
	if rude {
		<-sent
		if reset {
			tcp.SetLinger(0)
		}
		return nil
	}
	in := bufio.NewReader(c)
	if slow {
		time.Sleep(50 * time.Millisecond) // it does not read at once
	}
	for i, want := range v.want {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return fmt.Errorf("answer %d of %d: %w", i, len(v.want), err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			return fmt.Errorf("body of answer %d: %w", i, err)
		}
		if err := want(resp, got); err != nil {
			return fmt.Errorf("answer %d of %d: %w", i, len(v.want), err)
		}
	}
	if err := <-sent; err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if half || v.last {
		if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
			if !errors.Is(err, syscall.ECONNRESET) || !v.last {
				return fmt.Errorf("behind the last: %q, %w", rest, err)
			}
		}
	}
	return nil
}

func descriptors(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(all)
}

// However requests come, in pieces, many at once, with an end or a reset at any place, each gets its own answer, and
// every connection that has ended is forgotten.
func TestServer_EveryRequestGetsItsOwnAnswer(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		before := descriptors(t)
		h := &handler{handle: model}
		s, addr := e.start(t, h, long)
		var all sync.WaitGroup
		for w := range 40 {
			all.Go(func() {
				for n := range 8 {
					r := rand.New(rand.NewPCG(uint64(w), uint64(n)))
					v := &visitor{}
					for i := range 1 + r.IntN(6) {
						v.ask(fmt.Sprintf("%d-%d-%d", w, n, i), r)
					}
					if err := v.visit(addr, r); err != nil {
						t.Errorf("visit %d of %d: %v", n, w, err)
						return
					}
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		testkit.Eventually(t, "all have ended", func() bool {
			return s.Stats().Connections == 0 &&
				h.opened.Load() == h.closed.Load()
		})
		s.Drain(t.Context())
		testkit.Eventually(t, "all descriptors are closed, but for those of Go's poller", func() bool {
			return descriptors(t) <= before+3
		})
	})
}

// A request that came before a drain gets an answer, or none at all; no answer is cut off, and no connection stays.
func TestDrain_UnderLoadCutsNothing(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		h := &handler{handle: model}
		o := long
		o.ReadHeaderTimeout = 3 * time.Second
		s, addr := e.start(t, h, o)
		var stop atomic.Bool
		var all sync.WaitGroup
		var whole atomic.Int64
		for range 10 { // silent ones
			connect(t, addr)
		}
		for w := range 30 {
			all.Go(func() {
				for n := 0; !stop.Load(); n++ {
					r := rand.New(rand.NewPCG(uint64(w), uint64(n)))
					v := &visitor{}
					for i := range 1 + r.IntN(4) {
						v.ask(fmt.Sprintf("%d-%d-%d", w, n, i), r)
					}
					err := v.visit(addr, r)
					switch {
					case err == nil:
						whole.Add(1)
					case strings.HasPrefix(err.Error(), "body of"), strings.Contains(err.Error(), "answered"),
						strings.Contains(err.Error(), "timeout"):
						t.Errorf("visit %d of %d: %v", n, w, err)
					} // else the connection ended before the request, or was not opened
				}
			})
		}
		testkit.Eventually(t, "there is load", func() bool { return whole.Load() > 20 })
		cut := s.Drain(t.Context())
		stop.Store(true)
		all.Wait()
		if n := s.Stats().Connections; cut != 0 || n != 0 || h.opened.Load() != h.closed.Load() {
			t.Errorf("%d cut, %d open; %d opened, %d closed", cut, n, h.opened.Load(), h.closed.Load())
		}
	})
}
