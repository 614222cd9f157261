package redisconn

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// doorman counts the connections to a server, and lets nothing through while it hangs.
type doorman struct {
	addr  string
	came  atomic.Int64
	hangs atomic.Bool
}

func guard(t *testing.T, server string) *doorman {
	t.Helper()
	d := &doorman{}
	d.addr = redistest.Between(t, server, func(client, _ *net.TCPConn) (there, back func()) {
		d.came.Add(1)
		if d.hangs.Load() {
			there = func() { _, _ = io.Copy(io.Discard, client) }
		}
		return there, nil
	})
	return d
}

// A pool that is opened ahead is for a rush of orders, and not for a Redis that does not answer one.
func TestStorm_ServerThatHangsGetsOneConnectionATryAndAllWhenItAnswers(t *testing.T) {
	const connections, tries = 16, 10
	d := guard(t, redistest.Start(t).Addr)
	d.hangs.Store(true)
	l, err := New(Options{
		Addresses: []string{d.addr}, PoolSize: connections, ConnectTimeout: 5 * time.Second, Timeout: 50 * time.Millisecond,
		BreakerErrors: 1, BreakerPause: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	testkit.Eventually(t, "the first pool is open", func() bool { return d.came.Load() == connections-1 })
	for tried := 0; tried <= tries; {
		if err := ping(t, l); err == nil {
			t.Fatal("a server that hangs has answered")
		} else if !errors.Is(err, gobreaker.ErrOpenState) {
			tried++
		}
		time.Sleep(time.Millisecond) // the breaker lets a try through every 10 ms
	}
	before := d.came.Load()
	if before > connections+2+tries {
		t.Errorf("%d tries opened %d connections", tries, before)
	}
	d.hangs.Store(false)
	testkit.Eventually(t, "it answers", func() bool { return ping(t, l) == nil })
	testkit.Eventually(t, "the pool is open again", func() bool { return d.came.Load() >= before+connections-1 })
}

func TestStorm_EachServerIsTaughtOnceOverHoweverManyConnections(t *testing.T) {
	for _, c := range []struct {
		name string // that Identify gives
		want int64
	}{{"one", 1}, {"", 4}} {
		t.Run("named "+strconv.Quote(c.name), func(t *testing.T) {
			var taught atomic.Int64
			var name atomic.Pointer[string]
			name.Store(&c.name)
			server := redistest.Start(t)
			l, err := New(Options{
				Addresses: []string{server.Addr}, PoolSize: 4, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
				BreakerErrors: 5, BreakerPause: time.Second,
				Identify: func(context.Context, redis.Cmdable) (string, error) { return *name.Load(), nil },
				OnServer: func(context.Context, redis.Cmdable) error { taught.Add(1); return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			use := func() { // all of the connections
				t.Helper()
				if err := ping(t, l); err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				var busy [4]*redis.Conn
				for i := range busy {
					busy[i] = only(l).session.Load().client.(*redis.Client).Conn()
					all.Go(func() {
						if err := busy[i].Ping(t.Context()).Err(); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				for _, b := range busy {
					b.Close()
				}
			}
			use()
			if n := taught.Load(); n != c.want {
				t.Errorf("it was taught %d times, want %d", n, c.want)
			}
			if c.name == "" {
				return
			}
			other := "another"
			name.Store(&other)
			if err := server.Client.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "the other server is asked", func() bool { return ping(t, l) == nil })
			use()
			if n := taught.Load(); n != 2 {
				t.Errorf("two servers were taught %d times", n)
			}
		})
	}
}
