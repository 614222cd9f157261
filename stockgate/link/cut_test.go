package link

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
)

// cutter passes on what clients say to a server, and what it answers, until somebody says word: that is passed on too,
// and the connection is closed with the answer's first byte.
func cutter(t *testing.T, server, word string) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { between(t.Context(), client, server, word) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		all.Wait()
	})
	return ln.Addr().String()
}

func between(ctx context.Context, client net.Conn, server, word string) {
	defer client.Close()
	back, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer back.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	said := make(chan bool, 1)
	go func() {
		defer back.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			if bytes.Contains(buf[:n], []byte(word)) {
				said <- true
			}
			if _, err := back.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := back.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-said:
			return
		default:
		}
		if _, err := io.Copy(client, bytes.NewReader(buf[:n])); err != nil {
			return
		}
	}
}

// The client library repeats by itself what broke off or took too long, unless it is told not to.
func TestCommandThatBreaksOffIsSentOnce(t *testing.T) {
	server := redistest.Start(t)
	o := Options{
		Addresses: []string{cutter(t, server.Addr, "incr")}, PoolSize: 1, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: 5, BreakerPause: time.Second,
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := ping(t, l); err != nil {
		t.Fatal(err)
	}
	if err := l.Do(t.Context(), func(ctx context.Context, c *redis.Client) error { return c.Incr(ctx, "n").Err() }, always); err == nil {
		t.Fatal("an answer came on a connection that was cut before it")
	}
	if n := server.Calls("incr"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}
