package redisconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// shopScript counts in Redis how often it ran for each order.
const shopScript = "return redis.call('hincrby', KEYS[1], ARGV[1], 1)"

// proxies stand between a Client and its servers. They drop replies to scripts: some connections are cut when the reply
// comes, others never get it.
type proxies struct {
	t       testing.TB
	mu      sync.Mutex
	to      map[string]string
	dropped atomic.Int64
	off     atomic.Bool
}

// through returns the address of the proxy before a server.
func (p *proxies) through(address string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to[address] == "" {
		p.to[address] = redistest.Between(p.t, address, p.carry)
	}
	return p.to[address]
}

func (p *proxies) carry(client, server *net.TCPConn) (there, back func()) {
	const pass, cut, swallow = 0, 1, 2
	var replies atomic.Int32
	there = func() {
		redistest.Pass(server, client, func(piece []byte) bool {
			if bytes.Contains(piece, []byte("hincrby")) && !p.off.Load() {
				if fate := rand.IntN(60); fate == cut || fate == swallow {
					p.dropped.Add(1)
					replies.Store(int32(fate))
				}
			}
			return true
		})
	}
	back = func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || replies.Load() == cut {
				return
			}
			if replies.Load() == pass {
				_, _ = client.Write(buf[:n])
			}
		}
	}
	return there, back
}

// order is one run of the shop's script, and what its caller was told.
type order struct {
	key, id string
	err     error
}

// rush runs the script for orders until enough were answered and the disturbance is over: alone, in pipelines, and in
// calls for several servers. It returns all orders.
func rush(t *testing.T, l *Client, keys []string, enough int, disturb func()) []order {
	t.Helper()
	var mu sync.Mutex
	var all []order
	var answered, next atomic.Int64
	var over atomic.Bool
	take := func(n int) (some []order) {
		for range n {
			some = append(some, order{key: keys[rand.IntN(len(keys))], id: strconv.FormatInt(next.Add(1), 10)})
		}
		return some
	}
	// put sends those that no server has answered, and judges each by itself.
	put := func(ctx context.Context, c Commands, some []order, done []bool, which []int) (first error) {
		pipe := c.Pipeline()
		cmds := make(map[int]*redis.Cmd)
		for _, i := range which {
			if !done[i] {
				cmds[i] = pipe.Eval(ctx, shopScript, []string{some[i].key}, some[i].id)
			}
		}
		if len(cmds) == 0 {
			return nil
		}
		_, _ = pipe.Exec(ctx)
		for i, cmd := range cmds {
			err := cmd.Err()
			some[i].err = err
			done[i] = !Unsent(err) && !Redirected(err) && !redis.IsReadOnlyError(err)
			if !done[i] && (first == nil || Redirected(err)) {
				first = err
			}
		}
		return first
	}
	shopper := func() {
		for !over.Load() || answered.Load() < int64(enough) {
			var some []order
			switch rand.IntN(3) {
			case 0:
				some = take(1)
				o := &some[0]
				o.err = l.To(o.key).Do(t.Context(), func(ctx context.Context, c Commands) error {
					return c.Eval(ctx, shopScript, []string{o.key}, o.id).Err()
				}, always)
			case 1:
				some = take(4)
				for i := range some {
					some[i].key = some[0].key
				}
				done := make([]bool, len(some))
				err := l.To(some[0].key).Do(t.Context(), func(ctx context.Context, c Commands) error {
					return put(ctx, c, some, done, []int{0, 1, 2, 3})
				}, always)
				for i := range some {
					if !done[i] {
						some[i].err = errors.Join(ErrUnsent, err)
					}
				}
			case 2:
				some = take(8)
				at, done := make([]string, len(some)), make([]bool, len(some))
				for i := range some {
					at[i] = some[i].key
				}
				errs := l.Each(t.Context(), at, func(ctx context.Context, c Commands, which []int) error {
					return put(ctx, c, some, done, which)
				}, always)
				for i := range some {
					if !done[i] && errs != nil {
						some[i].err = errors.Join(ErrUnsent, errs[i])
					}
				}
			}
			mu.Lock()
			all = append(all, some...)
			mu.Unlock()
			for _, o := range some {
				if o.err == nil {
					answered.Add(1)
				}
			}
			time.Sleep(time.Millisecond) // the servers need the processors too
		}
	}
	var shoppers sync.WaitGroup
	for range 6 {
		shoppers.Go(shopper)
	}
	disturb()
	over.Store(true)
	shoppers.Wait()
	return all
}

// judge compares what callers were told with how often the script ran. lossy servers may have lost what they answered.
func judge(t *testing.T, all []order, lossy bool, runs func(o order) string) {
	t.Helper()
	answered, unsent, unknown := 0, 0, 0
	for _, o := range all {
		n := runs(o)
		switch {
		case n != "" && n != "1":
			t.Fatalf("order %s ran %s times: %v", o.id, n, o.err)
		case o.err == nil:
			if answered++; n != "1" && !lossy {
				t.Fatalf("order %s was answered and did not run", o.id)
			}
		case Unsent(o.err):
			if unsent++; n != "" {
				t.Fatalf("order %s ran, and the error says that nothing was sent: %v", o.id, o.err)
			}
		default:
			unknown++
		}
	}
	t.Logf("%d orders answered, %d not sent, %d unknown", answered, unsent, unknown)
	if unknown == 0 {
		t.Error("no reply was lost")
	}
}

func behindProxies(t *testing.T, topology string, addresses []string, master string) (*Client, *proxies) {
	t.Helper()
	p := &proxies{t: t, to: make(map[string]string)}
	l := overCluster(t, addresses, func(o *Options) {
		o.Topology, o.MasterName, o.BreakerErrors, o.through = topology, master, 20, p.through
		o.Timeout, o.PoolSize = 300*time.Millisecond, 8
	})
	return l, p
}

func TestScript_RunsOnceBehindAProxyThatDropsReplies(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l, p := behindProxies(t, Single, []string{server.Addr}, "")
	all := rush(t, l, []string{"runs"}, 2000, func() {
		testkit.Eventually(t, "replies were dropped", func() bool { return p.dropped.Load() > 10 })
		if err := server.Client.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
			t.Error(err)
		}
	})
	judge(t, all, false, func(o order) string { return server.Client.HGet(context.Background(), o.key, o.id).Val() })
}

func TestScript_RunsOnceWhileSentinelsFailOver(t *testing.T) {
	testkit.Nightly(t, "two fail-overs by the clock of sentinels")
	t.Parallel()
	w := redistest.Sentinel(t)
	l, p := behindProxies(t, Sentinel, w.Addrs(), w.Name)
	var last *redistest.Server
	all := rush(t, l, []string{"runs"}, 2000, func() {
		testkit.Eventually(t, "replies were dropped", func() bool { return p.dropped.Load() > 10 })
		old := w.Master()
		testkit.Eventually(t, "the sentinel has a good replica", func() bool {
			return w.Sentinels[0].Client.Do(t.Context(), "sentinel", "failover", w.Name).Err() == nil
		})
		last = w.Successor(old) // demoted, and alive
		before := last.Calls("eval")
		testkit.Eventually(t, "the successor runs scripts", func() bool { return last.Calls("eval") > before+100 })
		last.Kill()
		last = w.Successor(last)
		before = last.Calls("eval")
		testkit.Eventually(t, "its successor runs scripts", func() bool { return last.Calls("eval") > before+100 })
	})
	judge(t, all, true, func(o order) string { return last.Client.HGet(context.Background(), o.key, o.id).Val() })
}

func TestScript_RunsOnceWhileSlotsOfAClusterMove(t *testing.T) {
	testkit.Nightly(t, "an election by the clock of a cluster")
	t.Parallel()
	nodes := redistest.Cluster(t, 3, 1)
	l, p := behindProxies(t, Cluster, nodes.Addrs(), "")
	var keys []string
	for i := range 12 {
		keys = append(keys, fmt.Sprintf("runs:{%d}", i))
	}
	said := func(word string) (n int64) {
		for _, i := range []int{0, 2} {
			n += nodes.Masters[i].Number("errorstats", "errorstat_"+word+":count=")
		}
		return n
	}
	hear := func(word string) { // a busy machine may send no order for a while
		for before, end := said(word), time.Now().Add(2*time.Second); said(word) == before && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond) // the slot stays half moved until an order has met it
		}
	}
	all := rush(t, l, keys, 2000, func() {
		testkit.Eventually(t, "replies were dropped", func() bool { return p.dropped.Load() > 10 })
		for _, key := range keys[:8] {
			slot := redistest.Slot(Tag(key))
			from := nodes.Owner(slot)
			if from == nodes.Masters[1] {
				continue // its replica must know all of its slots when it dies
			}
			to := nodes.Masters[0]
			if from == to {
				to = nodes.Masters[2]
			}
			for _, next := range []*redistest.Server{to, from} {
				nodes.Move(slot, next, func() { hear("ASK") })
			}
			hear("MOVED")
		}
		nodes.Masters[1].Kill()
		next := nodes.Successor(0)
		before := next.Calls("eval")
		testkit.Eventually(t, "the successor runs scripts", func() bool { return next.Calls("eval") > before+100 })
	})
	for _, word := range []string{"MOVED", "ASK"} {
		n := said(word)
		if t.Logf("%d times %s", n, word); n == 0 {
			t.Errorf("no server said %s", word)
		}
	}
	client := nodes.Client()
	judge(t, all, true, func(o order) string { return client.HGet(context.Background(), o.key, o.id).Val() })
}
