package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// tagging is a shop that says what it was asked for, sometimes late, sometimes at length.
type tagging struct{}

func (tagging) Send(o *Outgoing, resp *fasthttp.Response) Outcome {
	var body []byte
	if body = o.Body; o.BodyStream != nil {
		var err error
		if body, err = io.ReadAll(o.BodyStream); err != nil {
			return Broken
		}
	}
	target := strings.Fields(string(o.Line))[1]
	if strings.Contains(target, "late") {
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
	}
	said := []byte(target + "|" + string(body) + "|")
	if strings.Contains(target, "large") {
		said = bytes.Repeat(said, 100_000/len(said))
	}
	if strings.Contains(target, "stream") {
		resp.SetBodyStream(bytes.NewReader(said), len(said))
		return Answered
	}
	resp.SetBody(append([]byte(nil), said...))
	return Answered
}

func (s tagging) Upgrade(o *Outgoing, resp *fasthttp.Response) (net.Conn, Outcome) {
	return nil, s.Send(o, resp)
}

// openOnes counts open connections.
type openOnes struct{ n atomic.Int64 }

func (o *openOnes) Open(netip.Addr, bool) Reason { o.n.Add(1); return Admitted }
func (o *openOnes) Close(netip.Addr, bool)       { o.n.Add(-1) }

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
	kind := []string{"", "late/", "large/", "late/stream/", "large/stream/"}[r.IntN(5)]
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
	switch r.IntN(6) {
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
	case 3: // sold out, with a short body that is passed over
		body = body[:min(len(body), 900)]
		fmt.Fprintf(&v.raw, "POST /api/seckill/gone/order HTTP/1.1\r\nCookie: uid=%s\r\n%sContent-Length: %d\r\n%s%s", id, head, len(body), end, body)
		v.expect(409, nil)
	case 4:
		fmt.Fprintf(&v.raw, "POST /api/seckill/there/order HTTP/1.1\r\nCookie: uid=%s\r\nX-Id: %s\r\n%sContent-Length: 0\r\n%s", id, id, head, end)
		v.expect(200, func(b []byte) bool { return string(b) == "/api/seckill/there/order||" })
	case 5:
		fmt.Fprintf(&v.raw, "GET /api/seckill/there/order HTTP/1.1\r\n%s%s", head, end) // for the shop
		v.expect(200, nil)
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
			switch r.IntN(12) {
			case 0:
				time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
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
	if slow { // it does not listen at once
		time.Sleep(50 * time.Millisecond)
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

// However requests come, in pieces, many at once, with an end or a reset at any place, each gets its own answer, and whoever
// has gone is forgotten.
func TestEveryRequestGetsItsOwnAnswer(t *testing.T) {
	limit := &openOnes{}
	o := options(tagging{})
	o.MaxBody = 1 << 20
	o.Stock.(*shelf).closed["gone"] = SoldOut
	before := descriptors(t)
	s, addr := serveWith(t, newProxy(t, o), ServerOptions{Connections: limit, ReadHeaderTimeout: 20 * time.Second, ReadTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: 20 * time.Second})
	var all sync.WaitGroup
	for w := range 40 {
		all.Go(func() {
			for n := range 12 {
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
	for range 400 {
		s.mu.Lock()
		open := len(s.open)
		s.mu.Unlock()
		if open == 0 && limit.n.Load() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if limit.n.Load() != 0 || len(s.open) != 0 {
		t.Errorf("%d are counted, %d are held", limit.n.Load(), len(s.open))
	}
	s.Drain(t.Context())
	if n := descriptors(t); n > before+3 { // Go's poller
		t.Errorf("%d descriptors, %d before", n, before)
	}
}

// Whoever has asked before an end is told gets an answer, or none at all; nobody is cut off, and nobody stays.
func TestDrainUnderLoadCutsNobodyOff(t *testing.T) {
	for round := range 2 {
		limit := &openOnes{}
		o := options(tagging{})
		o.MaxBody = 1 << 20
		o.Stock.(*shelf).closed["gone"] = SoldOut
		s, addr := serveWith(t, newProxy(t, o), ServerOptions{Connections: limit, ReadHeaderTimeout: 3 * time.Second, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second, IdleTimeout: 20 * time.Second})
		var stop atomic.Bool
		var all sync.WaitGroup
		var fine, ended atomic.Int64
		for range 10 { // who says nothing
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		for w := range 30 {
			all.Go(func() {
				for n := 0; !stop.Load(); n++ {
					r := rand.New(rand.NewPCG(uint64(100*round+w), uint64(n)))
					v := &visitor{}
					for i := range 1 + r.IntN(4) {
						v.ask(fmt.Sprintf("%d-%d-%d", w, n, i), r)
					}
					err := v.visit(addr, r)
					switch {
					case err == nil:
						fine.Add(1)
					case strings.HasPrefix(err.Error(), "body of"), strings.Contains(err.Error(), "answered"), strings.Contains(err.Error(), "timeout"):
						t.Errorf("visit %d of %d: %v", n, w, err)
					default:
						ended.Add(1)
					}
				}
			})
		}
		time.Sleep(time.Duration(50+100*round) * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		cut := s.Drain(ctx)
		cancel()
		stop.Store(true)
		all.Wait()
		if fine.Load() == 0 || ended.Load() == 0 {
			t.Errorf("%d visits were whole, %d met the end: this has tried nothing", fine.Load(), ended.Load())
		}
		s.mu.Lock()
		if cut != 0 || limit.n.Load() != 0 || len(s.open) != 0 {
			t.Errorf("%d cut, %d counted, %d open", cut, limit.n.Load(), len(s.open))
		}
		s.mu.Unlock()
	}
}

// Who sends on behind the request whose answer is the last one gets that whole: closing over what was not read would reset it away.
func TestLastAnswerIsNotResetAwayByWhatIsBehindItsRequest(t *testing.T) {
	s, addr := serveWith(t, newProxy(t, options(tagging{})), ServerOptions{Connections: &openOnes{}, IdleTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second})
	s.Announce()
	for range 20 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(32 << 10) // most of the answer waits at the gate's side
		c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.WriteString(c, strings.Repeat("GET /large/1 HTTP/1.1\r\nHost: s\r\nX-Pad: "+strings.Repeat("p", 2000)+"\r\n\r\n", 20)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || !resp.Close {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || len(got) < 90_000 {
			t.Fatalf("%d bytes: %v", len(got), err)
		}
	}
}
