package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// paced asks a gate for a page at a steady rate, whatever its answers take, over a few connections of its own.
type paced struct {
	front string
	every time.Duration // between two pages of one connection
	conns int

	mu     sync.Mutex
	took   []time.Duration
	failed []string
}

// during asks for so long. A page that had to wait since its connection's last one was late counts from when it was
// due; that this process woke up late is no fault of the gate and does not count.
func (p *paced) during(t *testing.T, length time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	for c := range p.conns {
		all.Go(func() { p.one(length, p.every*time.Duration(c)/time.Duration(p.conns)) })
	}
	all.Wait()
	for _, what := range p.failed {
		t.Errorf("a page was answered %s", what)
	}
	p.failed = nil
}

// one is what one connection does.
func (p *paced) one(length, offset time.Duration) {
	c, err := net.Dial("tcp", p.front)
	if err != nil {
		p.keep(nil, err.Error())
		return
	}
	defer c.Close()
	in := bufio.NewReader(c)
	took := make([]time.Duration, 0, length/p.every+1)
	start := time.Now()
	free := start // the last page was answered
	for due := start.Add(offset); due.Before(start.Add(length)); due = due.Add(p.every) {
		time.Sleep(time.Until(due)) // the rate
		began := time.Now()
		if free.After(due) {
			began = due
		}
		if what := asksPage(c, in); what != "" {
			p.keep(took, what)
			return
		}
		free = time.Now()
		took = append(took, free.Sub(began))
	}
	p.keep(took, "")
}

// asksPage asks once; "" = it was answered as it should be.
func asksPage(c net.Conn, in *bufio.Reader) string {
	_ = c.SetDeadline(time.Now().Add(long))
	if _, err := io.WriteString(c, "GET /page HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
		return err.Error()
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return err.Error()
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if reason := resp.Header.Get("X-Sluice-Reason"); err != nil || resp.StatusCode >= 500 || reason != "" {
		return fmt.Sprintf("%d %s %v", resp.StatusCode, reason, err)
	}
	return ""
}

func (p *paced) keep(took []time.Duration, failed string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = append(p.took, took...)
	if failed != "" {
		p.failed = append(p.failed, failed)
	}
}

// spread are durations, shortest first.
type spread []time.Duration

func (p *paced) spread() spread {
	slices.Sort(p.took)
	return p.took
}

// at is the duration that a share of all does not exceed.
func (s spread) at(share float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	return s[min(len(s)-1, int(share*float64(len(s))))]
}

// over is how many times as long as those of b its durations are, at one share.
func (s spread) over(b spread, share float64) float64 {
	return float64(s.at(share)) / float64(b.at(share))
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func (s spread) String() string {
	return fmt.Sprintf("p50 %v p99 %v p99.9 %v max %v", s.at(0.5), s.at(0.99), s.at(0.999), s.at(1))
}
