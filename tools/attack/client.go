package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"sluice/internal/load"
)

// ServeHTTP implements http.Handler.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
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

// tally is what became of the requests of an honest crowd.
type tally struct {
	asked, served int64
	lost          map[string]int64 // those that were not answered 200, by reason or fault
	took          load.Times
}

func (t *tally) failed() int64 { return t.asked - t.served }

// ask has a crowd ask once for each arrival. Attackers write their bytes themselves: no honest client sends such.
func ask(ctx context.Context, over *load.Connections, arrivals []time.Duration, write func([]byte, int) []byte,
	patience time.Duration) (*tally, error) {
	defer over.Close()
	c, err := load.New(load.Plan{Over: over, Arrivals: arrivals, Request: write, Tries: 1, GiveUpAfter: patience})
	if err != nil {
		return nil, err
	}
	c.Run(ctx, time.Now())
	n := c.Counts()
	t := &tally{asked: int64(len(arrivals)), served: n.Status[http.StatusOK], lost: n.Rejected,
		took: load.Together(c.Answers, c.Rejections).Times()}
	for why, count := range map[string]int64{"broke off": n.Broken, "not sent in time": t.asked - n.Requests,
		"500 and above": n.Overloaded} {
		if count > 0 {
			t.lost[why] = count
		}
	}
	for why, count := range n.Unknown {
		t.lost[why] = count
	}
	return t, ctx.Err()
}

// order is a small order. A connection serves about ten.
func order(dst []byte, number int) []byte {
	last := ""
	if number%10 == 9 {
		last = "Connection: close\r\n"
	}
	return fmt.Appendf(dst, "POST /order HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nCookie: uid=7\r\n"+
		"%sContent-Length: 25\r\n\r\n{\"sku\":\"1001\",\"amount\":1}", last)
}

// splitter sends the body of a request in a packet of its own.
type splitter struct{ net.Conn }

// Write implements io.Writer.
func (s splitter) Write(request []byte) (int, error) {
	head := bytes.Index(request, []byte("\r\n\r\n")) + 4
	if n, err := s.Conn.Write(request[:head]); err != nil {
		return n, err
	}
	time.Sleep(5 * time.Millisecond)
	n, err := s.Conn.Write(request[head:])
	return head + n, err
}

// shopHonestly places an order every 20 ms until the deadline of ctx, on each second connection with its body in a
// packet of its own, over connections that serve about ten orders each.
func shopHonestly(ctx context.Context, address string) (*tally, error) {
	var arrivals []time.Duration
	end, _ := ctx.Deadline()
	for at, lasts := time.Duration(0), time.Until(end); at < lasts; at += 20 * time.Millisecond {
		arrivals = append(arrivals, at)
	}
	d := net.Dialer{Timeout: 10 * time.Second}
	over := load.NewConnections(16, func(ctx context.Context, i int) (net.Conn, error) {
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil && i%2 == 1 {
			c = splitter{c}
		}
		return c, err
	})
	return ask(context.WithoutCancel(ctx), over, arrivals, order, 20*time.Second) // the last ones are waited for
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

func milliseconds(d time.Duration) string { return millis(float64(d) / 1e6) }

func millis(ms float64) string { return fmt.Sprintf("%.1f ms", ms) }

// besides are the rows that tell how honest clients fared.
func besides(sluice, nginx *tally) []row {
	rows := []row{{
		figure: "honest orders not served", bound: "0", broken: sluice.failed() > 0,
		sluice: fmt.Sprintf("%d of %d", sluice.failed(), sluice.asked),
		nginx:  fmt.Sprintf("%d of %d", nginx.failed(), nginx.asked),
	}, {figure: "honest orders, p50", sluice: millis(sluice.took.P50), nginx: millis(nginx.took.P50)},
		{figure: "honest orders, p99", sluice: millis(sluice.took.P99), nginx: millis(nginx.took.P99)}}
	for why, n := range sluice.lost {
		rows = append(rows, row{figure: "honest orders: " + why, sluice: fmt.Sprint(n)})
	}
	return rows
}
