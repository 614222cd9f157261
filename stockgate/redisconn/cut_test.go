package redisconn

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// cutter passes on what clients say to a server, and what it answers, until somebody says word: that is passed on too,
// and the connection is closed with the answer's first byte.
func cutter(t *testing.T, addr, word string) string {
	t.Helper()
	return redistest.Between(t, addr, func(client, server *net.TCPConn) (there, back func()) {
		var said atomic.Bool
		there = func() {
			redistest.Pass(server, client, func(piece []byte) bool {
				if bytes.Contains(piece, []byte(word)) {
					said.Store(true)
				}
				return true
			})
		}
		return there, func() { redistest.Pass(client, server, func([]byte) bool { return !said.Load() }) }
	})
}

// The client library repeats by itself what broke off or took too long, unless it is told not to.
func TestCut_CommandThatBreaksOffIsSentOnce(t *testing.T) {
	server := redistest.Start(t)
	o := Options{
		Addresses: []string{cutter(t, server.Addr, "incr")}, PoolSize: 1, ConnectTimeout: 5 * time.Second,
		Timeout:       5 * time.Second,
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
	if err := l.Do(t.Context(), func(ctx context.Context, c Commands) error { return c.Incr(ctx, "n").Err() },
		always); err == nil {
		t.Fatal("an answer came on a connection that was cut before it")
	}
	if n := server.Calls("incr"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}
