package sqlstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// The environment of a test binary that is a settler, until it is killed.
const (
	childRedis    = "SETTLE_TEST_REDIS"
	childDatabase = "SETTLE_TEST_DATABASE"
)

func TestMain(m *testing.M) {
	if os.Getenv(childRedis) != "" {
		runChild()
		return
	}
	redistest.Main(dbtest.Main(m))
}

// runChild settles until the process is killed, or its parent is gone.
func runChild() {
	l, err := redisconn.New(storetest.Redis(os.Getenv(childRedis)))
	if err != nil {
		panic(err)
	}
	store, err := sqlstore.Open(sqlstore.Options{URL: os.Getenv(childDatabase)})
	if err != nil {
		panic(err)
	}
	s, err := settle.New(settle.Stream{Name: "shop", Redis: l}, store,
		settle.Options{Batch: 10, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		cancel()
	}()
	fmt.Println("ready")
	s.Run(ctx)
}

type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func startChild(t *testing.T, redis, database string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childRedis+"="+redis, childDatabase+"="+database)
	c.cmd.Stderr = os.Stderr
	c.stdin = must(c.cmd.StdinPipe())(t)
	out := must(c.cmd.StdoutPipe())(t)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the settler did not start: %q, %v", line, err)
	}
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

const (
	crashSKUs   = 4
	crashOrders = 1500 // of each SKU
	crashKills  = 60   // at most
	leastKills  = 5
)

// sell sells orders of a SKU: 8 of 10 are confirmed, one is released, one refunded. The last of them wait until
// settlers were killed leastKills times, however fast these settle.
func sell(l *testLedger, sku string, kills *atomic.Int64) error {
	ctx := context.Background()
	now := time.Now().UnixMilli()
	keep := now + time.Hour.Milliseconds()
	for first := 0; first < crashOrders; first += 10 {
		for kills.Load() < int64(first*(leastKills+1)/crashOrders) && !l.t.Failed() {
			<-time.After(time.Millisecond) // until the other goroutine has killed
		}
		items, codes, done := make([]ledger.Item, 10), make([]ledger.Code, 10), make([]ledger.Done, 10)
		for i := range items {
			items[i] = ledger.Item{Serial: fmt.Sprintf("%s-%d", sku, first+i), User: fmt.Sprint("u", first+i),
				Quantity: 1 + int64(i%3)}
		}
		if _, err := l.store.Reserve(ctx, sku, 0, now, keep, items, codes); err != nil {
			return err
		}
		for _, step := range []struct {
			op    ledger.Op
			items []ledger.Item
		}{{ledger.Confirm, items[:9]}, {ledger.Release, items[9:]}, {ledger.Refund, items[8:9]}} {
			if _, err := l.store.Finish(ctx, sku, now, keep, step.op, step.items, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// Two settlers work on the same SKUs, and are killed again and again. In the end every record is the same.
func TestSettlers_KilledAnywhereBookOnce(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, url string) {
		server := redistest.Start(t)
		s := newSite(t, server, url, sqlstore.Stock{})
		var skus []string
		var selling sync.WaitGroup
		var kills atomic.Int64
		for i := range crashSKUs {
			sku := fmt.Sprintf("crash-%d", i)
			skus = append(skus, sku)
			s.ledger.set(sku, 4*crashOrders)
			selling.Go(func() {
				if err := sell(s.ledger, sku, &kills); err != nil {
					t.Errorf("sell %s: %v", sku, err)
				}
			})
		}
		killSettlers(s, skus, &kills)
		selling.Wait()
		orders := 0
		for _, sku := range skus {
			s.drain(sku)
			c := s.equal(sku)
			orders += c.Records
			if left := s.left(sku); left != 4*crashOrders-c.Sold {
				t.Errorf("%s: %d units are left, want %d", sku, left, 4*crashOrders-c.Sold)
			}
		}
		if orders != crashSKUs*crashOrders || kills.Load() < leastKills {
			t.Errorf("%d orders compared after %d kills: want %d, at least %d", orders, kills.Load(), crashSKUs*crashOrders,
				leastKills)
		}
		t.Logf("%d orders, %d settlers killed", orders, kills.Load())
	})
}

// killSettlers runs two settlers and kills one of them after another, until everything is settled. It counts them.
func killSettlers(s *site, skus []string, kills *atomic.Int64) {
	s.Helper()
	children := []*child{startChild(s.T, s.redis.Addr, s.url), startChild(s.T, s.redis.Addr, s.url)}
	for n := 0; n < crashKills && !s.settled(skus); n++ {
		<-time.After(time.Duration(5+rand.IntN(100)) * time.Millisecond) // a kill comes at any moment
		children[n%2].kill()
		kills.Add(1)
		children[n%2] = startChild(s.T, s.redis.Addr, s.url)
	}
	for _, c := range children {
		c.kill()
	}
}

// settled reports whether all orders are sold and settled.
func (s *site) settled(skus []string) bool {
	s.Helper()
	ledgers := must(s.stream.Ledgers(s.Context(), skus))(s.T)
	for i, sku := range skus {
		cursor, _, err := s.store.Cursor(s.Context(), sku)
		if err != nil || cursor.Position != ledgers[i].Position || cursor.Ver != 1+4*crashOrders/10 {
			return false
		}
	}
	return true
}
