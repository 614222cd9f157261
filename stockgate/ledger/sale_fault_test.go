package ledger

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
)

// rush is a sale under way: buyers without end at two desks, each with a Redis of its own.
type rush struct {
	desks  []*Reserver
	stores []*Store
	log    *testkit.Log

	mu        sync.Mutex
	forwarded map[string]int // how often each serial was
	answers   map[Code]int
	states    map[State]int // of what is not on sale

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
		answers:   map[Code]int{},
		states:    map[State]int{},
	}
	for range 2 {
		o := optionsFor(server, 8)
		o.Log = logTo(s.log)
		r := testkit.Must[*Store](t)(NewStore(o))
		t.Cleanup(func() { r.Close() })
		r.Settle = time.Hour // what freezes is opened by hand
		s.stores = append(s.stores, r)
		d := testOptions()
		d.SoldOutMemory = 100 * time.Millisecond
		s.desks = append(s.desks, opened(t, d, r, nil))
	}
	testkit.Must[Stock](t)(s.stores[0].SetTotal(t.Context(), testSKU, units, 0))
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
	if out.Code == NotOnSale {
		s.states[out.State]++
	}
	if out.Code == Held {
		s.forwarded[out.Serial]++
	}
	s.mu.Unlock()
	if out.Code != Held {
		time.Sleep(time.Millisecond) // buyers who get nothing leave the processors to the others
		return
	}
	if late {
		t.Error("sold although it is closed")
	}
	d.Settle(testSKU, Item{Serial: out.Serial}, Confirm)
}

// won is how many orders the shop has.
func (s *rush) won() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.forwarded))
}

// heard is how often somebody heard that the SKU is in a state, and so not on sale.
func (s *rush) heard(state State) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[state]
}

// reconcile tells the ledger of each order that the shop has, and opens the SKU.
func (s *rush) reconcile(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for serial := range s.forwarded {
		if done := finishOne(t, s.stores[0], Adopt, serial); done != Changed &&
			done != Already {
			t.Errorf("adopt %s: %v", serial, done)
		}
	}
	testkit.Must[Stock](t)(s.stores[0].SetState(t.Context(), testSKU, On))
}

// ends waits until all is sold and every hold is decided, and fails if the shop has another number of orders.
func (s *rush) ends(t *testing.T, units int64) {
	t.Helper()
	testkit.Eventually(t, "all is sold, and every hold is decided", func() bool {
		stock, _, err := s.stores[0].ReadStock(context.Background(), testSKU)
		return err == nil && stock.Sold == units && stock.Held == 0
	})
	s.stop()
	testkit.Want(t, "orders at the shop", s.won(), units)
	for serial, n := range s.forwarded {
		testkit.Want(t, "forwarded "+serial, n, 1)
		r, ok, err := s.stores[0].Find(t.Context(), testSKU, serial)
		if err != nil || !ok || r.Status != StatusSold {
			t.Errorf("%s: %+v, %v, %v", serial, r, ok, err)
		}
	}
}

func TestSaleFault_SaleGoesOnByItselfAfterRedisWasKilled(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	const units = 3_000
	s := openSale(t, server, units, 16)
	for _, sold := range []int64{200, 600} {
		testkit.Eventually(t, "the sale is under way", func() bool { return s.won() >= sold })
		server.Kill()
		server.Restart()
		testkit.Eventually(t, "orders win again", func() bool { return s.won() > sold+100 })
	}
	s.ends(t, units)
	for _, r := range s.stores {
		for _, why := range LossReasons() {
			testkit.Want(t, why, valueOf(r.lost.WithLabelValues(why)), 0)
		}
	}
}

func TestSaleFault_SaleStopsWhenTheLastCommandsAreLostAndNeverOversells(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	const units = 600
	s := openSale(t, server, units, 8)
	dir := server.Client.ConfigGet(t.Context(), "dir").Val()["dir"]
	testkit.Eventually(t, "the sale is under way", func() bool { return s.won() >= 200 })
	s.halt.Lock() // the last commands are those of the five orders below
	testkit.Eventually(t, "all orders are confirmed", func() bool {
		stock, _, err := s.stores[0].ReadStock(t.Context(), testSKU)
		return err == nil && stock.Held == 0
	})
	length := lengthOfLog(t, dir)
	for i := range 5 {
		out := s.desks[i%2].buy(fmt.Sprint("last ", i), "")
		wants(t, "one of the last", out, Held)
		s.forwarded[out.Serial]++
	}
	server.Kill()
	cutAfter(t, dir, length)
	server.Restart()
	s.halt.Unlock()
	testkit.Eventually(t, "frozen", func() bool { return s.heard(Frozen) > 100 })
	s.closed.Store(true)
	stock := stockIn(t, s.stores[0])
	testkit.Want(t, "state", stock.State, Frozen)
	if stock.Why != LostMark && stock.Why != LostVersion {
		t.Errorf("why: %q", stock.Why)
	}
	testkit.Eventually(t, "the log says why", func() bool { return s.log.Count("why="+stock.Why) > 0 })
	tries := s.tries.Load()
	testkit.Eventually(t, "many more have tried", func() bool { return s.tries.Load() > tries+100 })
	s.closed.Store(false)
	s.reconcile(t)
	s.ends(t, units)
}

// lengthOfLog is the length of the append-only file. It ends with a whole command: each is written before its reply.
func lengthOfLog(t *testing.T, dir string) int64 {
	t.Helper()
	return testkit.Must[os.FileInfo](t)(os.Stat(logOf(t, dir))).Size()
}

func logOf(t *testing.T, dir string) string {
	t.Helper()
	files := testkit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof")))
	testkit.Want(t, "files", len(files), 1)
	return files[0]
}

// cutAfter takes all commands off the append-only file that begin behind a length.
func cutAfter(t *testing.T, dir string, length int64) {
	t.Helper()
	text := testkit.Must[[]byte](t)(os.ReadFile(logOf(t, dir)))
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
	testkit.Check(t, os.Truncate(logOf(t, dir), int64(at)))
}

// skipCommand returns where the command ends that begins at a place: *2 $3 GET $1 k, each on a line.
func skipCommand(t *testing.T, text []byte, at int) int {
	line := func(mark byte) int {
		end := bytes.IndexByte(text[at:], '\n') + at
		if text[at] != mark || end < at {
			t.Fatalf("%q is no command", text[at:])
		}
		n := testkit.Must[int](t)(strconv.Atoi(string(text[at+1 : end-1])))
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
	testkit.Eventually(t, "the sale is under way", func() bool { return s.won() >= 200 })
	testkit.Check(t, server.Client.FlushAll(t.Context()).Err())
	s.closed.Store(true)
	testkit.Eventually(t, "it is told that it is lost", func() bool { return s.heard(Lost) > 200 })
	for _, r := range s.stores {
		testkit.Eventually(t, "each instance raises an alarm", func() bool {
			return valueOf(r.lost.WithLabelValues(LostKey)) > 0
		})
	}
	testkit.Eventually(t, "the log says why", func() bool { return s.log.Count("why=missing") > 0 })
	if _, err := s.stores[1].SetTotal(t.Context(), testSKU, 300, 0); !errors.Is(err, ErrLost) {
		t.Errorf("a new ledger in the place of a lost one: %v", err)
	}
	units := s.won() + 300
	testkit.Must[Stock](t)(s.stores[1].Recreate(t.Context(), testSKU, units, 0, false))
	testkit.Eventually(t, "all instances have told their orders", func() bool {
		b := stockIn(t, s.stores[1])
		return b.Untold == 0 && b.Held+b.Sold == units-300
	})
	s.closed.Store(false)
	testkit.Must[Stock](t)(s.stores[1].SetState(t.Context(), testSKU, On))
	testkit.Eventually(t, "all is sold again", func() bool { return s.won() == units })
	testkit.Eventually(t, "it is told that it is sold out", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.answers[SoldOut] > 100
	})
	testkit.Want(t, "orders at the shop", s.won(), units)
}

func TestSaleFault_ScriptFlushUnderLoadCostsNoClientAnError(t *testing.T) {
	server := redistest.Start(t)
	s := openSale(t, server, 1_000_000_000, 32)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 15 {
		<-tick.C
		testkit.Check(t, server.Client.ScriptFlush(t.Context()).Err())
		won := s.won()
		testkit.Eventually(t, "the sale goes on", func() bool { return s.won() > won })
	}
	s.stop()
	testkit.Want(t, "kinds of answers", len(s.answers), 1)
	testkit.Want(t, "orders", int64(s.answers[Held]), s.won())
	for _, d := range s.desks {
		testkit.Eventually(
			t,
			"all is settled",
			func() bool { return strings.Contains(scrape(t, d), "sluice_settle_queue_length 0\n") },
		)
		testkit.Want(t, "no retries", strings.Contains(scrape(t, d), "sluice_settle_retries_total 0\n"), true)
	}
	if server.Calls("eval") < 10 {
		t.Fatal("the scripts were hardly ever missing: the test says nothing")
	}
	t.Logf("%d orders, %d texts sent again", s.won(), server.Calls("eval"))
}
