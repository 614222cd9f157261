package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

var chunks = scenario{
	name:        "chunks",
	description: "bodies in chunks of one byte; honest orders beside 32 clients that send them",
	run:         attackChunks,
}

// mostChunkCost is how many times as much processor time as nginx a body in one-byte chunks may cost.
const mostChunkCost = 5

// fastConnections have one connection carry as many requests a second as it can.
const fastConnections = "limits.connection.request_rate = \"10000/s\"\nlimits.connection.request_burst = 10000\n"

func attackChunks(ctx context.Context, e *env) ([]row, error) {
	gate, err := e.sluice(ctx, fastConnections+orderRoutes)
	if err != nil {
		return nil, err
	}
	beside, err := e.nginx(ctx)
	if err != nil {
		return nil, err
	}
	times := 60
	if e.short {
		times = 15
	}
	var rows []row
	for _, c := range []struct {
		name, path string
		size       int // bytes of content
	}{{"600 KB, `pass`", "/upload", 600_000}, {"200 KB, order", "/order", 200_000}} {
		text := inChunks(c.path, c.size)
		ours, err := chunkCost(ctx, gate, text, times)
		if err != nil {
			return nil, err
		}
		theirs, err := chunkCost(ctx, beside, text, times)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{
			figure: "processor time of a body, " + c.name, bound: fmt.Sprintf("<= %d x nginx", mostChunkCost),
			sluice: milliseconds(ours), nginx: milliseconds(theirs), broken: ours > mostChunkCost*theirs,
		})
	}
	lasts := 10 * time.Second
	if e.short {
		lasts = 3 * time.Second
	}
	text := inChunks("/order", 200_000)
	ours, err := chunksBeside(ctx, gate, text, lasts)
	if err != nil {
		return nil, err
	}
	theirs, err := chunksBeside(ctx, beside, text, lasts)
	if err != nil {
		return nil, err
	}
	return append(rows, besides(ours, theirs)...), nil
}

// chunksBeside has 32 clients send such requests without a pause, and returns how honest clients fared beside them.
func chunksBeside(ctx context.Context, p *peer, text []byte, lasts time.Duration) (*tally, error) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var wait sync.WaitGroup
	for range 32 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for ctx.Err() == nil {
				_, _ = chunkCost(ctx, p, text, 10) // one that is rejected begins anew
			}
		}()
	}
	h, err := shopHonestly(ctx, p.address)
	wait.Wait()
	return h, err
}

// inChunks is a request whose body of so many bytes comes in chunks of one byte.
func inChunks(path string, size int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nCookie: uid=7\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n", path)
	content := append([]byte(`{"sku":"1001","note":"`), bytes.Repeat([]byte("x"), size-24)...)
	for _, c := range append(content, `"}`...) {
		b.WriteString("1\r\n")
		b.WriteByte(c)
		b.WriteString("\r\n")
	}
	b.WriteString("0\r\n\r\n")
	return b.Bytes()
}

// chunkCost is the processor time that p uses for one such request, of many.
func chunkCost(ctx context.Context, p *peer, text []byte, times int) (time.Duration, error) {
	c, err := net.Dial("tcp", p.address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	begun := p.cpu()
	for range times {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if err := writeAll(c, text); err != nil {
			return 0, err
		}
		if status := readAnswer(in); status != "200" || ctx.Err() != nil {
			return 0, fmt.Errorf("a body in chunks was answered %s", status)
		}
	}
	return (p.cpu() - begun) / time.Duration(times), nil
}
