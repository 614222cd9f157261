package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"sluice/internal/periodic"
)

var bodies = scenario{
	name:        "bodies",
	description: "4,000 clients send orders of 262 KB at 29 KB/s each, while honest clients place small orders",
	run:         attackBodies,
}

const (
	slowClients = 4000
	slowBody    = 262_000      // bytes; just below server.max_body_size
	slowPiece   = 14_500       // bytes, each half a second
	mostMemory  = float64(200) // MiB of PSS
	orderRoutes = `
stock.source = "memory"
stock.unknown_sku = "allow"
[[route]]
name = "order"
match = "POST /order"
gate = "check"
sku = "$json_sku"
user = "$cookie_uid"
[[route]]
name = "rest"
match = "/"
gate = "pass"
`
)

func attackBodies(ctx context.Context, e *env) ([]row, error) {
	lasts := 40 * time.Second
	if e.short {
		lasts = 12 * time.Second
	}
	ours, theirs, err := e.attackBoth(ctx, orderRoutes, func(ctx context.Context, p *peer) (*tally, error) {
		return slowOrders(ctx, p, lasts)
	})
	if err != nil {
		return nil, err
	}
	most := e.peers[0].most
	return append([]row{{
		figure: "memory (PSS), the most", bound: fmt.Sprintf("<= %.0f MiB", mostMemory), broken: most > mostMemory,
		sluice: fmt.Sprintf("%.0f MiB", most),
	}}, besides(ours, theirs)...), nil
}

// slowOrders plays the attack on p, and returns how honest clients fared.
func slowOrders(ctx context.Context, p *peer, lasts time.Duration) (*tally, error) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var wait sync.WaitGroup
	body := append([]byte(`{"sku":"1001","note":"`), bytes.Repeat([]byte("x"), slowBody-24)...)
	body = append(body, `"}`...)
	for i := range connections(slowClients) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			periodic.Pause(ctx, time.Duration(i%1000)*2*time.Millisecond)
			for ctx.Err() == nil {
				sendSlowly(ctx, i, p.address, "/order", body)
				periodic.Pause(ctx, time.Second)
			}
		}()
	}
	periodic.Pause(ctx, 2*time.Second) // until all of them are there
	h, err := shopHonestly(ctx, p.address)
	wait.Wait()
	return h, err
}

// sendSlowly sends one large body, a piece each half a second, until it is answered.
func sendSlowly(ctx context.Context, i int, address, path string, body []byte) {
	c, err := dial(ctx, i, address)
	if err != nil {
		return
	}
	defer c.Close()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		readAnswer(bufio.NewReaderSize(c, 1<<10))
		_ = c.Close()
	}()
	defer func() { c.Close(); <-answered }()
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n"+
		"Cookie: uid=%d\r\nContent-Length: %d\r\n\r\n", path, i, len(body))
	for rest := body; err == nil && len(rest) > 0 && ctx.Err() == nil; {
		n := min(slowPiece, len(rest))
		err = writeAll(c, rest[:n])
		rest = rest[n:]
		select {
		case <-answered:
			return
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
	select {
	case <-answered:
	case <-ctx.Done():
	}
}

func writeAll(c net.Conn, p []byte) error {
	_, err := io.Copy(c, bytes.NewReader(p))
	return err
}
