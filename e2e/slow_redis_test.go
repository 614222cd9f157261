package e2e

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// slowly stands between a gate and its Redis, and hands every answer over late, for as long as late says.
type slowly struct {
	addr string
	late atomic.Int64 // ns
}

func slow(t *testing.T, to string) *slowly {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slowly{addr: ln.Addr().String()}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { ln.Close() })
	all.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			all.Go(func() { defer out.Close(); _, _ = io.Copy(out, in) })
			all.Go(func() { defer in.Close(); s.answer(t, in, out) })
		}
	})
	return s
}

// answer copies what Redis says.
func (s *slowly) answer(t *testing.T, to io.Writer, from io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-time.After(time.Duration(s.late.Load())):
		case <-t.Context().Done():
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// lasted is how long a number of requests took, shortest first.
func lasted(n int, ask func()) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		start := time.Now()
		ask()
		all[i] = time.Since(start)
	}
	slices.Sort(all)
	return all
}

func TestSlowRedisIsFeltByOrdersAloneAndNotForLong(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, r *redistest.Server, s *slowly) *running{
		"check": func(t *testing.T, r *redistest.Server, s *slowly) *running {
			r.Client.Set(t.Context(), key, 1000, 0)
			return gate(t, open(t, nil).setting(), "stock.source = \"redis\"\nstock.redis.addresses = "+quoted(s.addr))
		},
		"reserve": func(t *testing.T, r *redistest.Server, s *slowly) *running {
			g := gate(t, "stock.source = \"redis\"\nstock.redis.addresses = "+quoted(s.addr), boundless, book(t, nil).setting(), reserveRoutes)
			ok(t, "stock", "set", "--config", g.file, "1001", "1000")
			return g
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := redistest.Start(t)
			s := slow(t, r.Addr)
			g := open(t, r, s)
			user := 0
			order := func() answer {
				user++
				return g.ask("POST", "/api/seckill/1001/order", "Cookie: uid="+fmt.Sprint(user))
			}
			soon(t, "orders pass", func() bool { return order().status == 200 })
			page := func() {
				if a := g.ask("GET", "/page"); a.status == 0 || a.status >= 500 {
					t.Errorf("a page was answered %d %s", a.status, a.reason)
				}
			}
			before := lasted(300, page)
			s.late.Store(int64(3 * time.Second))
			soon(t, "orders are refused", func() bool { return order().status == 503 })
			refused := lasted(30, func() {
				if a := order(); a.status != 503 {
					t.Errorf("an order was answered %d %s", a.status, a.reason)
				}
			})
			during := lasted(300, page)
			s.late.Store(0)
			took := soon(t, "orders pass again", func() bool { return order().status == 200 })
			t.Logf("pages p99 %v, then %v; orders refused after %v at most; sold again after %v", before[297], during[297], refused[29], took)
		})
	}
}
