package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// runID names a server as the ledger does.
func runID(ctx context.Context, c redis.Cmdable) (string, error) {
	text, err := c.Info(ctx, "server").Result()
	_, after, _ := strings.Cut(text, "run_id:")
	id, _, _ := strings.Cut(after, "\r")
	return id, err
}

func overCluster(t *testing.T, addresses []string, change func(*Options)) *Client {
	t.Helper()
	o := Options{
		Topology: Cluster, Addresses: addresses, PoolSize: 3, ConnectTimeout: 3 * time.Second, Timeout: 3 * time.Second,
		BreakerErrors: 5, BreakerPause: 100 * time.Millisecond, Identify: runID,
	}
	if change != nil {
		change(&o)
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// count adds one to a key, where that is.
func count(ctx context.Context, l *Client, key string) (server string, err error) {
	err = l.To(key).Ask(ctx, func(ctx context.Context, c Commands, s string) error {
		server = s
		return c.Incr(ctx, key).Err()
	}, always)
	return server, err
}

// skus are keys all over a cluster.
func skus(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("sluice:{%d}:s", 1000+i))
	}
	return keys
}

func TestCluster_QuestionReachesTheServerThatHasItsKey(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	l := overCluster(t, nodes.Addrs()[:1], nil) // one seed is enough
	for _, key := range skus(60) {
		server, err := count(t.Context(), l, key)
		if err != nil {
			t.Fatal(err)
		}
		owner := nodes.Masters[redistest.Slot(Tag(key))*3/redistest.SlotCount]
		if id := owner.Client.InfoMap(t.Context(), "server").Item("Server", "run_id"); id != server {
			t.Fatalf("%s: asked on %s, it is on %s", key, server, id)
		}
	}
	for _, s := range nodes.Masters {
		if n := s.Number("errorstats", "errorstat_MOVED:count="); n != 0 {
			t.Errorf("%d questions went to a wrong server", n)
		}
	}
	if ways, err := l.Servers(t.Context()); err != nil || len(ways) != 3 {
		t.Fatalf("%d servers: %v", len(ways), err)
	}
}

func TestCluster_QuestionFollowsItsSlotWithoutRunningTwice(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	told := make(chan struct{}, 10)
	l := overCluster(t, nodes.Addrs(), func(o *Options) { o.Moved = func() { told <- struct{}{} } })
	const key = "sluice:{1001}:s"
	before, err := count(t.Context(), l, key)
	if err != nil {
		t.Fatal(err)
	}
	to := nodes.Masters[(redistest.Slot(Tag(key))*3/redistest.SlotCount+1)%3]
	asked := 1
	nodes.Move(redistest.Slot(Tag(key)), to, func() { // the key is at to, and the slot is not yet
		if _, err := count(t.Context(), l, key); err != nil {
			t.Fatal(err)
		}
		asked++
	})
	var after string
	for range 3 {
		if after, err = count(t.Context(), l, key); err != nil {
			t.Fatal(err)
		}
		asked++
	}
	if before == after {
		t.Fatal("it is still said to be the same server")
	}
	if n := to.Client.Get(t.Context(), key).Val(); n != strconv.Itoa(asked) {
		t.Fatalf("%d questions ran %s times", asked, n)
	}
	testkit.Eventually(t, "it is told that the slot has moved", func() bool { // a review follows the first redirection
		if _, err = count(t.Context(), l, key); err != nil {
			t.Fatal(err)
		}
		return len(told) > 0
	})
}

func TestCluster_KeysOnTwoServersAreWaitedForAndNothingRuns(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 2)
	l := overCluster(t, nodes.Addrs(), nil)
	keys := []string{"{1001}:a", "{1001}:b", "{1001}:c", "{1001}:d"}
	both := func(ctx context.Context) error {
		return l.To(keys[0]).Do(ctx, func(ctx context.Context, c Commands) error {
			return c.Eval(ctx, "for _, k in ipairs(KEYS) do redis.call('incr', k) end return 1", keys).Err()
		}, always)
	}
	if err := both(t.Context()); err != nil {
		t.Fatal(err)
	}
	slot, meanwhile := redistest.Slot(Tag(keys[0])), make(chan error, 1)
	steps := 0
	nodes.Move(slot, nodes.Masters[1-slot*2/redistest.SlotCount], func() {
		if steps++; steps == 1 {
			go func() { meanwhile <- both(t.Context()) }()
		}
	})
	if err := <-meanwhile; err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if n := nodes.Masters[1-slot*2/redistest.SlotCount].Client.Get(t.Context(), key).Val(); n != "2" {
			t.Errorf("%s is %s", key, n)
		}
	}
}

// Any server answers a question about a slot that no server has. It is not left alone for that: others ask it about
// theirs.
func TestCluster_SlotThatNoServerHasOpensNoBreaker(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	lost, slot := skus(1)[0], redistest.Slot(Tag(skus(1)[0]))
	for _, m := range nodes.Masters {
		err := m.Client.ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err()
		if err = errors.Join(err, m.Client.Do(t.Context(), "cluster", "delslots", slot).Err()); err != nil {
			t.Fatal(err)
		}
	}
	l := overCluster(t, nodes.Addrs(), nil)
	for range 50 {
		if _, err := count(t.Context(), l, lost); !redis.HasErrorPrefix(err, "CLUSTERDOWN") {
			t.Fatalf("asked about no server's slot: %v", err)
		}
	}
	for _, key := range skus(60)[1:] {
		if _, err := count(t.Context(), l, key); err != nil {
			t.Fatalf("asked about a server's slot: %v", err)
		}
	}
}

func TestCluster_DeadMasterIsLeftAloneAndTheOthersAreNot(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3, 1)
	l := overCluster(t, nodes.Addrs(), nil)
	dead, others := []string{}, []string{}
	for _, key := range skus(60) {
		if _, err := count(t.Context(), l, key); err != nil {
			t.Fatal(err)
		}
		if redistest.Slot(Tag(key))*3/redistest.SlotCount == 1 {
			dead = append(dead, key)
		} else {
			others = append(others, key)
		}
	}
	nodes.Masters[1].Kill()
	testkit.Eventually(t, "left alone", func() bool {
		_, err := count(t.Context(), l, dead[0])
		return errors.Is(err, ErrBreakerOpen)
	})
	for _, key := range others {
		if _, err := count(t.Context(), l, key); err != nil {
			t.Fatalf("on another server: %v", err)
		}
	}
	t.Run("until its successor is there", func(t *testing.T) {
		testkit.Nightly(t, "an election by the clock of a cluster")
		nodes.Successor(0)
		for _, key := range dead {
			testkit.Eventually(t, "the successor takes questions", func() bool {
				_, err := count(t.Context(), l, key)
				return err == nil
			})
		}
	})
}

func TestCluster_ManyKeysAreOneRoundTripToEachServer(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3, 1)
	l := overCluster(t, nodes.Addrs(), nil)
	keys := skus(90)
	var calls atomic.Int64
	read := func() (values []string, errs []error) {
		values = make([]string, len(keys))
		calls.Store(0)
		errs = l.Each(t.Context(), keys, func(ctx context.Context, c Commands, which []int) error {
			calls.Add(1)
			pipe := c.Pipeline()
			found := make([]*redis.StringCmd, len(which))
			for i, k := range which {
				found[i] = pipe.Get(ctx, keys[k])
			}
			_, err := pipe.Exec(ctx)
			for i, k := range which {
				values[k] = found[i].Val()
			}
			return err
		}, always)
		return values, errs
	}
	for _, key := range keys {
		if _, err := count(t.Context(), l, key); err != nil {
			t.Fatal(err)
		}
	}
	whole := func(what string) {
		t.Helper()
		values, errs := read()
		for i, v := range values {
			if v != "1" || errs != nil {
				t.Fatalf("%s: %s = %q, %v", what, keys[i], v, errs)
			}
		}
	}
	whole("at first")
	if n := calls.Load(); n != 3 {
		t.Errorf("%d round trips", n)
	}
	first := redistest.Slot(Tag(keys[0]))
	nodes.Move(first, nodes.Masters[(first*3/redistest.SlotCount+1)%3], func() { whole("while a slot moves") })
	whole("after a slot has moved")
	whole("again")
	nodes.Masters[1].Kill()
	_, errs := read()
	for i, key := range keys {
		on := nodes.Owner(redistest.Slot(Tag(key))) == nil
		if (errs != nil && errs[i] != nil) != on {
			t.Fatalf("%s: dead is %t, but %v", key, on, errs)
		}
	}
}
