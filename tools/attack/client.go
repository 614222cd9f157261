package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// ServeHTTP implements http.Handler.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	s.served.Add(1)
	switch r.URL.Path {
	case "/file":
		_, _ = w.Write(make([]byte, fileSize)) // in chunks
	case "/article":
		_, _ = w.Write(make([]byte, 100<<10))
	case "/page":
		_, _ = w.Write(make([]byte, 2<<10))
	default:
		_, _ = io.WriteString(w, "placed\n")
	}
}

// tally is what became of requests. It is safe for concurrent use.
type tally struct {
	mu   sync.Mutex
	took []time.Duration
	lost map[string]int // those that were not answered 200, by status and reason, or by the fault
}

func newTally() *tally { return &tally{lost: map[string]int{}} }

func (t *tally) count(took time.Duration, status string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.took = append(t.took, took); status != "200" {
		t.lost[status]++
	}
}

// order is a small order; %s is the address.
const order = "POST /order HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nCookie: uid=7\r\n" +
	"Content-Length: 25\r\n\r\n{\"sku\":\"1001\",\"amount\":1}"

// shopHonestly places an order every 20 ms until the context ends, each second one with its body in a packet of its
// own, over connections that serve ten orders each.
func shopHonestly(ctx context.Context, address string) *tally {
	h := newTally()
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for ctx.Err() == nil {
				shopOnce(ctx, address, i%2 == 1, h.count)
			}
		}()
	}
	wait.Wait()
	return h
}

// shopOnce places ten orders on one connection.
func shopOnce(ctx context.Context, address string, split bool, count func(time.Duration, string)) {
	begun := time.Now()
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		count(time.Since(begun), err.Error())
		return
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for range 10 {
		if ctx.Err() != nil {
			return
		}
		status := placeOrder(c, in, split)
		if count(time.Since(begun), status); status != "200" {
			return
		}
		time.Sleep(80 * time.Millisecond)
		begun = time.Now()
	}
}

// placeOrder sends one order and says what it was answered.
func placeOrder(c net.Conn, in *bufio.Reader, split bool) (status string) {
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	head, body, _ := strings.Cut(order, "\r\n\r\n")
	parts := []string{order}
	if split {
		parts = []string{head + "\r\n\r\n", body}
	}
	for i, part := range parts {
		if i > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		if _, err := io.WriteString(c, part); err != nil {
			return "write: " + err.Error()
		}
	}
	return readAnswer(in)
}

// readAnswer reads one response to its end, and tells its status, with the reason of a rejection.
func readAnswer(in *bufio.Reader) (status string) {
	resp, err := http.ReadResponse(in, &http.Request{Method: "POST"})
	if err != nil {
		return "read: " + err.Error()
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "read: " + err.Error()
	}
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("X-Sluice-Reason")))
}

// failed is how many were not served.
func (t *tally) failed() (n int) {
	for _, count := range t.lost {
		n += count
	}
	return n
}

// quantile is the time within which a share q of them were answered, of 1 the longest.
func (t *tally) quantile(q float64) time.Duration {
	if len(t.took) == 0 {
		return 0
	}
	slices.Sort(t.took)
	return t.took[min(len(t.took)-1, int(q*float64(len(t.took))))]
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

// besides are the rows that tell how honest clients fared.
func besides(sluice, nginx *tally) []row {
	rows := []row{{
		figure: "honest orders not served", bound: "0", broken: sluice.failed() > 0,
		sluice: fmt.Sprintf("%d of %d", sluice.failed(), len(sluice.took)),
		nginx:  fmt.Sprintf("%d of %d", nginx.failed(), len(nginx.took)),
	}}
	for _, q := range []float64{0.5, 0.99} {
		rows = append(rows, row{
			figure: fmt.Sprintf("honest orders, p%.0f", 100*q),
			sluice: milliseconds(sluice.quantile(q)), nginx: milliseconds(nginx.quantile(q)),
		})
	}
	for status, n := range sluice.lost {
		rows = append(rows, row{figure: "honest orders answered " + status, sluice: fmt.Sprint(n)})
	}
	return rows
}
