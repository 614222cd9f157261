package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// losses plays a ledger that forgets, before two instances, and knows what each of them has been told. Its laws:
// nobody wins who was told something that is gone, or, once Redis has become another process, while anybody was;
// nothing is ever closed without such a loss; and what an operator has reconciled sells again at once.
type losses struct {
	t      *testing.T
	server *redistest.Server
	rand   *rand.Rand
	stores []*Store
	run    string // what Redis calls itself
	played int

	sku   string
	won   []string // serials, by whoever was told
	told  []int    // by instance: answers since the snapshot
	lost  []bool   // by instance: it was told what is gone
	moved bool     // since the loss Redis is another process
	kept  snapshot
	then  StockVersion // of kept
	tries int
	total int64
}

func newLosses(t *testing.T, server *redistest.Server, texts map[string]string) *losses {
	l := &losses{t: t, server: server, run: "0"}
	for range 2 {
		o := optionsFor(server, 1)
		o.Identify = func(context.Context, *redis.Conn) (string, error) { return l.run, nil }
		r := testkit.Must[*Store](t)(open(o, compile(texts)))
		t.Cleanup(func() { r.Close() })
		r.visiting = true // nobody calls but the schedule
		l.stores = append(l.stores, r)
	}
	return l
}

// play is one schedule; seeds repeat it.
func (l *losses) play(seed uint64) error {
	l.played++
	l.rand, l.sku, l.tries, l.total = rand.New(rand.NewPCG(seed, 0)), fmt.Sprint("sku ", l.played), 0, 8
	l.won, l.told, l.lost, l.moved = nil, []int{0, 0}, []bool{false, false}, false
	defer l.server.Client.Unlink(context.Background(), keys(l.sku)...)
	if _, err := l.stores[0].SetTotal(context.Background(), l.sku, l.total, 0); err != nil {
		return err
	}
	for i := range l.stores { // nobody waits for an instance whose very first calls were lost
		if err := l.sweep(i); err != nil {
			return err
		}
	}
	l.keep()
	for n := range 30 {
		what, step := l.draw()
		if err := step(); err != nil {
			return fmt.Errorf("step %d, %s: %w", n, what, err)
		}
	}
	return nil
}

func (l *losses) draw() (string, func() error) {
	i := l.rand.IntN(2)
	switch n := l.rand.IntN(20); {
	case n < 7:
		return fmt.Sprint("buy at ", i), func() error { return l.buy(i, false) }
	case n < 8:
		return fmt.Sprint("late call at ", i), func() error { return l.late(i) }
	case n < 10:
		return fmt.Sprint("look at ", i), func() error { return l.look(i) }
	case n < 12:
		return fmt.Sprint("sweep at ", i), func() error { return l.sweep(i) }
	case n < 14:
		return "keep", func() error { l.keep(); return nil }
	case n < 15:
		return "lose", func() error { l.lose(); return nil }
	case n < 16:
		return "lose and move", func() error { l.lose(); l.move(); return nil }
	case n < 18:
		return "move", func() error { l.move(); return nil }
	case n < 19:
		return fmt.Sprint("reconcile at ", i), func() error { return l.reconcile(i) }
	}
	return "all look", l.allLook
}

func (l *losses) anyLost() bool { return slices.Contains(l.lost, true) }

// buy tries one unit. sure says that it must be had if there is one.
func (l *losses) buy(i int, sure bool) error {
	l.tries++
	serial, codes := fmt.Sprint(l.tries), make([]Code, 1)
	free := l.total - int64(len(l.won))
	h, err := l.stores[i].Reserve(
		context.Background(),
		l.sku,
		0,
		1,
		1_000,
		[]Item{{Serial: serial, User: "", Quantity: 1}},
		codes,
	)
	if err != nil {
		return err
	}
	l.told[i]++
	if codes[0] == Held {
		l.won = append(l.won, serial)
	}
	switch {
	case codes[0] == Held && (l.lost[i] || l.moved && l.anyLost()):
		return fmt.Errorf("sold, though %v was told what is gone", l.lost)
	case h.State == Frozen && !l.anyLost():
		return errors.New("closed, though nothing is gone")
	case sure && free > 0 && codes[0] != Held, sure && free == 0 && codes[0] != SoldOut:
		return fmt.Errorf("code %d in the state %s with %d units free", codes[0], h.State, free)
	}
	return nil
}

// late is a call that left before those that were answered already; then comes one in its turn, or the late one's
// loss would show by the version alone.
func (l *losses) late(i int) error {
	r := l.stores[i]
	now := r.calls.Swap(0)
	err := l.buy(i, false)
	r.calls.Store(now)
	return errors.Join(err, l.sweep(i))
}

// sweep leaves a mark.
func (l *losses) sweep(i int) (err error) {
	l.told[i]++
	_, err = l.stores[i].Sweep(context.Background(), l.sku, 1, 2, 1)
	return err
}

// look leaves no mark: only a version that is gone is missed.
func (l *losses) look(i int) error {
	s, _, err := l.stores[i].ReadStock(context.Background(), l.sku)
	if l.then.Older(s.StockVersion) {
		l.told[i]++
	}
	return err
}

// keep is what the ledger will go back to.
func (l *losses) keep() {
	l.kept = snapshotOf(l.t, l.server, l.sku)
	numbers := l.server.Client.HMGet(context.Background(), keys(l.sku)[0], "epoch", "ver").Val()
	l.then = StockVersion{Epoch: integer(numbers[0].(string)), Ver: integer(numbers[1].(string))}
	if !l.anyLost() {
		l.told = []int{0, 0}
	}
}

// lose takes the ledger back, once.
func (l *losses) lose() {
	if l.anyLost() {
		return
	}
	l.kept.restore(l.t, l.server)
	for i, n := range l.told {
		l.lost[i] = n > 0
	}
	l.told, l.moved = []int{0, 0}, false
}

// move makes Redis another process.
func (l *losses) move() {
	l.run = fmt.Sprint(l.rand.Int64())
	l.moved = true
	testkit.Check(
		l.t,
		l.server.Client.ClientKillByFilter(context.Background(), "type", "normal", "skipme", "yes").Err(),
	)
}

func (l *losses) allLook() error {
	for i := range l.stores {
		if err := l.sweep(i); err != nil {
			return err
		}
	}
	if l.anyLost() {
		return nil
	}
	return l.buy(l.rand.IntN(2), true)
}

// reconcile is what an operator does at an instance, when each has looked: whoever looks later and misses an epoch
// would close it again.
func (l *losses) reconcile(i int) error {
	if err := errors.Join(l.sweep(0), l.sweep(1)); err != nil {
		return err
	}
	ctx, r := context.Background(), l.stores[i]
	if _, err := r.SetState(ctx, l.sku, Frozen); err != nil {
		return err
	}
	for _, serial := range l.won {
		if _, err := r.Finish(ctx, l.sku, 1, 2, Adopt, []Item{{Serial: serial, User: "", Quantity: 1}},
			make([]Done, 1)); err != nil {
			return err
		}
	}
	s, err := r.SetState(ctx, l.sku, On)
	if err != nil {
		return err
	}
	// Somebody may have been sold what was gone, by who was not told of it: the total is then what it became.
	l.total = max(l.total, s.Held+s.Sold)
	if _, err := r.SetTotal(ctx, l.sku, l.total, 0); err != nil {
		return err
	}
	l.told[i]++
	l.lost, l.moved = []bool{false, false}, false
	return l.buy(l.rand.IntN(2), s.Held+s.Sold == int64(len(l.won)))
}

// nightly is whether make nightly runs the tests.
func nightly() bool { return os.Getenv("SLUICE_NIGHTLY") != "" }

// rounds is how many of n schedules a run has: all of them at night, else a tenth.
func rounds(n uint64) uint64 {
	if nightly() {
		return n
	}
	return n / 10
}

func TestLossSchedule_LostUnitsAreNotSoldAndNothingClosesWithoutALoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := newLosses(t, server, texts())
	for seed := range rounds(300) {
		if err := l.play(seed); err != nil {
			t.Fatalf("schedule %d: %v", seed, err)
		}
	}
	for _, why := range []string{lostMark, lostVersion} {
		if n := valueOf(l.stores[0].lost.WithLabelValues(why)); n < int64(rounds(20)) {
			t.Errorf("%s: noticed %d times, the test says little", why, n)
		}
	}
}
