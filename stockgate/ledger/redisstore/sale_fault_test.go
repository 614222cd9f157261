package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// rush is a sale under way: buyers without end at two desks, each with a Redis of its own.
type rush struct {
	desks  []*seller
	stores []*Store
	log    *testkit.Log

	mu        sync.Mutex
	forwarded map[string]int // how often each serial was
	answers   map[protocol.Code]int
	states    map[protocol.State]int // of what is not on sale

	halt    sync.RWMutex // held by buyers while they buy
	tries   atomic.Int64
	closed  atomic.Bool // nobody who comes now may win
	stopped atomic.Bool
	buyers  sync.WaitGroup
}

// openSale begins a sale of units on server; what is forwarded is confirmed at once.
func openSale(t *testing.T, server *redistest.Server, units int64, buyers int) *rush {
	t.Helper()
	s := &rush{
		log:       &testkit.Log{},
		forwarded: map[string]int{},
		answers:   map[protocol.Code]int{},
		states:    map[protocol.State]int{},
	}
	for range 2 {
		o := optionsFor(server, 8)
		o.Log = ledgertest.LogTo(s.log)
		r := ledgertest.Must[*Store](t)(New(o))
		t.Cleanup(func() { r.Close() })
		r.Settle = time.Hour // what freezes is opened by hand
		s.stores = append(s.stores, r)
		d := deskOptions()
		d.SoldOutMemory = 100 * time.Millisecond
		s.desks = append(s.desks, opened(t, d, r, nil))
	}
	ledgertest.Must[protocol.Stock](t)(s.stores[0].SetTotal(t.Context(), ledgertest.SKU, units, 0))
	for range buyers {
		s.buyers.Go(func() {
			for !s.stopped.Load() {
				s.buy(t)
			}
		})
	}
	t.Cleanup(s.stop)
	return s
}

func (s *rush) stop() {
	s.stopped.Store(true)
	s.buyers.Wait()
}

// buy is one buyer's try, who comes once.
func (s *rush) buy(t *testing.T) {
	s.halt.RLock()
	defer s.halt.RUnlock()
	n, late := s.tries.Add(1), s.closed.Load()
	d := s.desks[n%2]
	out := d.buy(fmt.Sprint("user ", n), "")
	s.mu.Lock()
	s.answers[out.Code]++
	if out.Code == protocol.NotOnSale {
		s.states[out.State]++
	}
	if out.Code == protocol.Held {
		s.forwarded[out.Serial]++
	}
	s.mu.Unlock()
	if out.Code != protocol.Held {
		time.Sleep(time.Millisecond) // buyers who get nothing leave the processors to the others
		return
	}
	if late {
		t.Error("sold although it is closed")
	}
	d.Settle(ledgertest.SKU, protocol.Item{Serial: out.Serial}, protocol.Confirm)
}

// won is how many orders the shop has.
func (s *rush) won() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.forwarded))
}

// heard is how often somebody heard that the SKU is in a state, and so not on sale.
func (s *rush) heard(state protocol.State) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[state]
}

// reconcile tells the ledger of each order that the shop has, and opens the SKU.
func (s *rush) reconcile(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for serial := range s.forwarded {
		if done := ledgertest.Finish(t, s.stores[0], protocol.Adopt, serial); done != protocol.Changed &&
			done != protocol.Already {
			t.Errorf("adopt %s: %v", serial, done)
		}
	}
	ledgertest.Must[protocol.Stock](t)(s.stores[0].SetState(t.Context(), ledgertest.SKU, protocol.On))
}

// ends waits until all is sold and every hold is decided, and fails if the shop has another number of orders.
func (s *rush) ends(t *testing.T, units int64) {
	t.Helper()
	ledgertest.Until(t, "all is sold, and every hold is decided", func() bool {
		stock, _, err := s.stores[0].ReadStock(context.Background(), ledgertest.SKU)
		return err == nil && stock.Sold == units && stock.Held == 0
	})
	s.stop()
	ledgertest.Want(t, "orders at the shop", s.won(), units)
	for serial, n := range s.forwarded {
		ledgertest.Want(t, "forwarded "+serial, n, 1)
		r, ok, err := s.stores[0].Find(t.Context(), ledgertest.SKU, serial)
		if err != nil || !ok || r.Status != protocol.StatusSold {
			t.Errorf("%s: %+v, %v, %v", serial, r, ok, err)
		}
	}
}

func TestSaleFault_SaleGoesOnByItselfAfterRedisWasKilled(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	const units = 3_000
	s := openSale(t, server, units, 16)
	for _, sold := range []int64{200, 600} {
		ledgertest.Until(t, "the sale is under way", func() bool { return s.won() >= sold })
		server.Kill()
		server.Restart()
		ledgertest.Until(t, "somebody wins again", func() bool { return s.won() > sold+100 })
	}
	s.ends(t, units)
	for _, r := range s.stores {
		for _, why := range failover.LossReasons() {
			ledgertest.Want(t, why, ledgertest.Value(r.lost.WithLabelValues(why)), 0)
		}
	}
}

func TestSaleFault_SaleStopsWhenTheLastCommandsAreLostAndNeverOversells(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	const units = 600
	s := openSale(t, server, units, 8)
	dir := server.Client.ConfigGet(t.Context(), "dir").Val()["dir"]
	ledgertest.Until(t, "the sale is under way", func() bool { return s.won() >= 200 })
	s.halt.Lock() // the last commands are those of the five orders below
	ledgertest.Until(t, "all orders are confirmed", func() bool {
		stock, _, err := s.stores[0].ReadStock(t.Context(), ledgertest.SKU)
		return err == nil && stock.Held == 0
	})
	length := lengthOfLog(t, dir)
	for i := range 5 {
		out := s.desks[i%2].buy(fmt.Sprint("last ", i), "")
		wants(t, "one of the last", out, protocol.Held)
		s.forwarded[out.Serial]++
	}
	server.Kill()
	cutAfter(t, dir, length)
	server.Restart()
	s.halt.Unlock()
	ledgertest.Until(t, "frozen", func() bool { return s.heard(protocol.Frozen) > 100 })
	s.closed.Store(true)
	stock := ledgertest.StockOf(t, s.stores[0])
	ledgertest.Want(t, "state", stock.State, protocol.Frozen)
	if stock.Why != failover.LostMark && stock.Why != failover.LostVersion {
		t.Errorf("why: %q", stock.Why)
	}
	ledgertest.Until(t, "the log says why", func() bool { return s.log.Count("why="+stock.Why) > 0 })
	tries := s.tries.Load()
	ledgertest.Until(t, "many more have tried", func() bool { return s.tries.Load() > tries+100 })
	s.closed.Store(false)
	s.reconcile(t)
	s.ends(t, units)
}

// lengthOfLog is the length of the append-only file. It ends with a whole command: each is written before its reply.
func lengthOfLog(t *testing.T, dir string) int64 {
	t.Helper()
	return ledgertest.Must[os.FileInfo](t)(os.Stat(logOf(t, dir))).Size()
}

func logOf(t *testing.T, dir string) string {
	t.Helper()
	files := ledgertest.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof")))
	ledgertest.Want(t, "files", len(files), 1)
	return files[0]
}

// cutAfter takes all commands off the append-only file that begin behind a length.
func cutAfter(t *testing.T, dir string, length int64) {
	t.Helper()
	text := ledgertest.Must[[]byte](t)(os.ReadFile(logOf(t, dir)))
	at := 0
	for int64(at) < length {
		at = skipCommand(t, text, at)
	}
	lost := 0
	for end := at; end < len(text); lost++ {
		end = skipCommand(t, text, end)
	}
	if lost < 5 { // a command for each of five orders at least
		t.Fatalf("%d commands were lost: the test says nothing", lost)
	}
	ledgertest.Check(t, os.Truncate(logOf(t, dir), int64(at)))
}

// skipCommand returns where the command ends that begins at a place: *2 $3 GET $1 k, each on a line.
func skipCommand(t *testing.T, text []byte, at int) int {
	line := func(mark byte) int {
		end := bytes.IndexByte(text[at:], '\n') + at
		if text[at] != mark || end < at {
			t.Fatalf("%q is no command", text[at:])
		}
		n := ledgertest.Must[int](t)(strconv.Atoi(string(text[at+1 : end-1])))
		at = end + 1
		return n
	}
	for range line('*') {
		at += line('$') + 2
	}
	return at
}

func TestSaleFault_SaleStopsWhenEverythingIsFlushedAndSaysWhy(t *testing.T) {
	server := redistest.Start(t)
	s := openSale(t, server, 100_000, 8)
	ledgertest.Until(t, "the sale is under way", func() bool { return s.won() >= 200 })
	ledgertest.Check(t, server.Client.FlushAll(t.Context()).Err())
	s.closed.Store(true)
	ledgertest.Until(t, "it is told that it is lost", func() bool { return s.heard(protocol.Lost) > 200 })
	for _, r := range s.stores {
		ledgertest.Until(t, "each instance raises an alarm", func() bool {
			return ledgertest.Value(r.lost.WithLabelValues(failover.LostKey)) > 0
		})
	}
	ledgertest.Until(t, "the log says why", func() bool { return s.log.Count("why=missing") > 0 })
	if _, err := s.stores[1].SetTotal(t.Context(), ledgertest.SKU, 300, 0); !errors.Is(err, protocol.ErrLost) {
		t.Errorf("a new ledger in the place of a lost one: %v", err)
	}
	units := s.won() + 300
	ledgertest.Must[protocol.Stock](t)(s.stores[1].Recreate(t.Context(), ledgertest.SKU, units, 0, false))
	ledgertest.Until(t, "all instances have told their orders", func() bool {
		b := ledgertest.StockOf(t, s.stores[1])
		return b.Untold == 0 && b.Held+b.Sold == units-300
	})
	s.closed.Store(false)
	ledgertest.Must[protocol.Stock](t)(s.stores[1].SetState(t.Context(), ledgertest.SKU, protocol.On))
	ledgertest.Until(t, "all is sold again", func() bool { return s.won() == units })
	ledgertest.Until(t, "it is told that it is sold out", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.answers[protocol.SoldOut] > 100
	})
	ledgertest.Want(t, "orders at the shop", s.won(), units)
}

func TestSaleFault_ScriptFlushUnderLoadCostsNoClientAnError(t *testing.T) {
	server := redistest.Start(t)
	s := openSale(t, server, 1_000_000_000, 32)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 15 {
		<-tick.C
		ledgertest.Check(t, server.Client.ScriptFlush(t.Context()).Err())
		won := s.won()
		ledgertest.Until(t, "the sale goes on", func() bool { return s.won() > won })
	}
	s.stop()
	ledgertest.Want(t, "kinds of answers", len(s.answers), 1)
	ledgertest.Want(t, "orders", int64(s.answers[protocol.Held]), s.won())
	for _, d := range s.desks {
		ledgertest.Until(
			t,
			"all is settled",
			func() bool { return strings.Contains(ledgertest.Scrape(t, d), "sluice_settle_queue_length 0\n") },
		)
		ledgertest.Want(t, "no retries", strings.Contains(ledgertest.Scrape(t, d), "sluice_settle_retries_total 0\n"), true)
	}
	if server.Calls("eval") < 10 {
		t.Fatal("the scripts were hardly ever missing: the test says nothing")
	}
	t.Logf("%d orders, %d texts sent again", s.won(), server.Calls("eval"))
}
