package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

var errCrash = errors.New("the process was killed here")

// crashing is a database at which a command is killed before, or after, a step.
type crashing struct {
	*sqlstore.Store
	beforeSettle, afterSettle, beforeLeave, afterLeave bool
}

func crash(now *bool) error {
	if *now {
		*now = false
		return errCrash
	}
	return nil
}

func (c *crashing) Settle(ctx context.Context, b settle.Batch) (settle.Outcome, error) {
	if err := crash(&c.beforeSettle); err != nil {
		return settle.Outcome{}, err
	}
	o, err := c.Store.Settle(ctx, b)
	return o, errors.Join(err, crash(&c.afterSettle))
}

func (c *crashing) Leave(ctx context.Context, sku string) (bool, error) {
	if err := crash(&c.beforeLeave); err != nil {
		return false, err
	}
	left, err := c.Store.Leave(ctx, sku)
	return left, errors.Join(err, crash(&c.afterLeave))
}

// homes are two databases for the ledgers of one Redis. Every SKU begins in "one".
type homes struct {
	*testing.T
	ledger *testLedger
	stream settle.Stream
	stores map[string]*sqlstore.Store
}

func newHomes(t *testing.T, one, two string) *homes {
	t.Helper()
	server := redistest.Start(t)
	h := &homes{T: t, ledger: openLedger(t, server), stores: make(map[string]*sqlstore.Store),
		stream: settle.Stream{Name: "shop", Redis: storetest.Link(t, server.Addr)}}
	for name, url := range map[string]string{"one": one, "two": two} {
		store := must(sqlstore.Open(sqlstore.Options{URL: url}))(t)
		t.Cleanup(func() { store.Close() })
		_ = must(store.Migrate(t.Context()))(t)
		h.stores[name] = store
	}
	return h
}

func (h *homes) settler(home string, db settle.Database) *settle.Settler {
	h.Helper()
	return must(settle.New(h.stream, db, settle.Options{
		Batch: 7, Ledger: h.ledger.of(home), Log: slog.New(slog.DiscardHandler), Givebacks: h.stores[home],
		Home: settle.Home{Name: home, All: []string{"one", "two"}, Of: func(string) string { return "one" }},
	}))(h.T)
}

// run lets the settlers of both homes work until the ledger is settled in one of them.
func (h *homes) run(sku, home string) {
	h.Helper()
	stop := h.start()
	h.settles(sku, home)
	stop()
}

// start lets the settlers of both homes work until stop.
func (h *homes) start() (stop func()) {
	h.Helper()
	ctx, end := context.WithCancel(h.Context())
	var working sync.WaitGroup
	for name, store := range h.stores {
		s := h.settler(name, store)
		working.Go(func() { s.Run(ctx) })
	}
	return func() { end(); working.Wait() }
}

// settles waits until the ledger is settled in a home, and the other one knows that it has it no more.
func (h *homes) settles(sku, home string) {
	h.Helper()
	testkit.Eventually(h.T, sku+" is settled in "+home, func() bool {
		c, _, err := h.stores[home].Cursor(h.Context(), sku)
		at := must(h.stream.Ledgers(h.Context(), []string{sku}))(h.T)[0].Position
		return err == nil && c.Position == at && c.State != settle.Moved && h.leftBehind(sku, home)
	})
}

// leftBehind reports whether the cursor of the other home, if there is one, says that the SKU was moved.
func (h *homes) leftBehind(sku, home string) bool {
	h.Helper()
	for name, store := range h.stores {
		if c, ok, err := store.Cursor(h.Context(), sku); name != home && (err != nil || ok && c.State != settle.Moved) {
			return false
		}
	}
	return true
}

// balances wants every order to be in one home, as the ledger has it.
func (h *homes) balances(sku, home string, sold int64) {
	h.Helper()
	c, ok, err := settle.Verify(h.Context(), h.stream, h.stores[home], sku)
	if err != nil || !ok || !c.Equal() || c.Sold != sold {
		h.Errorf("%s: %+v, %v, %v: want %d sold", home, c, ok, err, sold)
	}
	if left := must(h.stores[home].Left(h.Context(), sku))(h.T); left != 100-sold {
		h.Errorf("%s: %d units are left: want %d", home, left, 100-sold)
	}
}

// A move is broken off at each step. Settlers of both homes go on, and the command is repeated: then every order is in
// the new home, and the old one writes nothing more.
func TestMove_CrashAtEachStepLosesNothing(t *testing.T) {
	t.Parallel()
	urls := func(t *testing.T) (string, string) {
		return "sqlite:" + filepath.Join(t.TempDir(), "one.db"), "sqlite:" + filepath.Join(t.TempDir(), "two.db")
	}
	for name, at := range map[string]func(one, two *crashing){
		"nowhere":                                func(_, _ *crashing) {},
		"before the mark":                        func(_, two *crashing) { two.beforeLeave = true },
		"after the mark":                         func(_, two *crashing) { two.beforeSettle = true },
		"after the new home has read the ledger": func(_, two *crashing) { two.afterSettle = true },
		"before the old home is marked":          func(one, _ *crashing) { one.beforeLeave = true },
		"after the old home is marked":           func(one, _ *crashing) { one.afterLeave = true },
	} {
		t.Run(name, func(t *testing.T) {
			url1, url2 := urls(t)
			movesAndBack(newHomes(t, url1, url2), at)
		})
	}
	t.Run("postgres to mariadb", func(t *testing.T) {
		movesAndBack(newHomes(t, dbtest.InPostgres(t), dbtest.InMariaDB(t)),
			func(_, two *crashing) { two.afterSettle = true })
	})
}

func movesAndBack(h *homes, at func(one, two *crashing)) {
	const sku = "moved"
	h.ledger.set(sku, 100)
	h.ledger.buy(sku, 0, 10)
	h.run(sku, "one")
	h.balances(sku, "one", 10)
	h.ledger.buy(sku, 10, 5) // the old home has not seen them
	one, two := &crashing{Store: h.stores["one"]}, &crashing{Store: h.stores["two"]}
	at(one, two)
	unmarked, err := settle.Move(h.Context(), h.stream, h.settler("two", two), one, sku)
	if broken := errors.Join(unmarked, err); broken != nil && !errors.Is(broken, errCrash) {
		h.Fatal(broken)
	}
	h.ledger.buy(sku, 15, 5)
	// The next command finds the work done, or does what is left of it.
	unmarked, err = settle.Move(h.Context(), h.stream, h.settler("two", two), one, sku)
	if err != nil || unmarked != nil {
		h.Fatal(unmarked, err)
	}
	before, _, _ := h.stores["one"].Cursor(h.Context(), sku)
	h.ledger.buy(sku, 20, 5)
	h.ledger.finish(sku, "refund", sku+"-3")
	h.run(sku, "two")
	h.balances(sku, "two", 24)
	if after, _, _ := h.stores["one"].Cursor(h.Context(), sku); after != before || after.State != settle.Moved {
		h.Errorf("the old home is at %+v, and was at %+v", after, before)
	}
	// Back again: the rows that were left behind are old. Redis has forgotten the refunded order.
	h.ledger.server.Client.HDel(h.Context(), "sluice:shop:{"+sku+"}:r", sku+"-3")
	unmarked, err = settle.Move(h.Context(), h.stream, h.settler("one", one), two, sku)
	if err != nil || unmarked != nil {
		h.Fatal(unmarked, err)
	}
	h.run(sku, "one")
	if state := h.ledger.state(sku); state != "on" {
		h.Errorf("the SKU is %s: what the old home knew was told to the ledger", state)
	}
	c, _, err := settle.Verify(h.Context(), h.stream, h.stores["one"], sku)
	if err != nil || c.Sold != 24 || len(c.Differences) > 1 {
		h.Errorf("%+v, %v", c, err)
	}
}

// Two settlers whose files name different homes of a SKU: the first one has it, and the other one books nothing.
func TestHomes_FilesThatDifferBookOnce(t *testing.T) {
	t.Parallel()
	h := newHomes(t, "sqlite:"+filepath.Join(t.TempDir(), "one.db"), "sqlite:"+filepath.Join(t.TempDir(), "two.db"))
	const sku = "disputed"
	h.ledger.set(sku, 100)
	h.ledger.buy(sku, 0, 10)
	h.run(sku, "one")
	log := new(testkit.Log)
	other := settle.Home{Name: "two", All: []string{"one", "two"}, Of: func(string) string { return "two" }}
	s := must(settle.New(h.stream, h.stores["two"], settle.Options{Batch: 7, Ledger: h.ledger, Home: other,
		Log: slog.New(slog.NewTextHandler(log, nil))}))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	testkit.Eventually(t, "the way out is told", func() bool {
		return strings.Contains(log.String(), "sluice-settle move disputed --to two")
	})
	stop()
	<-ended
	if _, err := s.Rebuild(t.Context(), sku); !errors.Is(err, settle.ErrElsewhere) {
		t.Errorf("rebuild in the other home: %v", err)
	}
	if c, ok, err := h.stores["two"].Cursor(t.Context(), sku); ok || err != nil {
		t.Errorf("both homes book the SKU: %+v, %v", c, err)
	}
	l := must(h.stream.Ledgers(t.Context(), []string{sku}))(t)[0]
	if l.Home != "one" || other.Disputes(sku, l) == "" {
		t.Errorf("the mark is %q", l.Home)
	}
	h.balances(sku, "one", 10)
	// The way out.
	if _, err := settle.Move(t.Context(), h.stream, s, h.stores["one"], sku); err != nil {
		t.Fatal(err)
	}
	h.balances(sku, "two", 10)
}

// A batch that the settler of the old home began before the move does not take the SKU back.
func TestMove_LateBatchOfTheOldHome(t *testing.T) {
	t.Parallel()
	h := newHomes(t, "sqlite:"+filepath.Join(t.TempDir(), "one.db"), "sqlite:"+filepath.Join(t.TempDir(), "two.db"))
	const sku = "late"
	h.ledger.set(sku, 100)
	h.ledger.buy(sku, 0, 5)
	h.run(sku, "one")
	before, _, _ := h.stores["one"].Cursor(t.Context(), sku)
	h.ledger.buy(sku, 5, 1)
	entries := must(h.stream.Entries(t.Context(), sku, before.Position, 10))(t)[1:]
	last := entries[len(entries)-1]
	if _, err := h.stores["one"].Leave(t.Context(), sku); err != nil {
		t.Fatal(err)
	}
	b := settle.Batch{SKU: sku, From: &before, Entries: entries, Records: last.Records,
		To: settle.Cursor{Position: last.Position, Numbers: last.Numbers, Born: before.Born, Fingerprint: last.Fingerprint()}}
	if _, err := h.stores["one"].Settle(t.Context(), b); !errors.Is(err, settle.ErrElsewhere) {
		t.Errorf("a late batch: %v", err)
	}
	if c, _, _ := h.stores["one"].Cursor(t.Context(), sku); c.State != settle.Moved || c.Position != before.Position {
		t.Errorf("the old home is at %+v", c)
	}
}

// Settlers that run do the rest of a move that was broken off after its first step.
func TestMove_SettlersFinishIt(t *testing.T) {
	t.Parallel()
	h := newHomes(t, "sqlite:"+filepath.Join(t.TempDir(), "one.db"), "sqlite:"+filepath.Join(t.TempDir(), "two.db"))
	const sku = "half"
	h.ledger.set(sku, 100)
	h.ledger.buy(sku, 0, 10)
	h.run(sku, "one")
	two := &crashing{Store: h.stores["two"], beforeSettle: true}
	if _, err := settle.Move(t.Context(), h.stream, h.settler("two", two), nil, sku); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	h.ledger.buy(sku, 10, 5)
	h.run(sku, "two")
	h.balances(sku, "two", 15)
	// An order that the shop gives back in the old home stays due there, and is not refunded.
	err := h.stores["one"].Exec(t.Context(), "INSERT INTO sluice_giveback (sku, serial) VALUES ('half', 'half-1')")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := h.settler("one", h.stores["one"]).GiveBack(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	h.balances(sku, "two", 15)
	if age := must(h.stores["one"].OldestGiveback(t.Context()))(t); age == 0 {
		t.Error("the give-back is done in a home that has not the SKU")
	}
}

// An order of an earlier sale is in the home that had that sale, wherever the SKU is settled now. No order of the
// present sale is given back there, also where it has the same serial.
func TestGiveback_OfAnEarlierSaleAfterAMove(t *testing.T) {
	t.Parallel()
	h := newHomes(t, "sqlite:"+filepath.Join(t.TempDir(), "one.db"), "sqlite:"+filepath.Join(t.TempDir(), "two.db"))
	const sku = "twice"
	h.ledger.set(sku, 100)
	h.ledger.buy(sku, 0, 4)
	h.ledger.reserve(sku, "released", "u", 1)
	h.ledger.finish(sku, "release", "released")
	h.ledger.change(sku, ledger.Ended)
	h.run(sku, "one")
	earlier, _, _ := h.stores["one"].Cursor(t.Context(), sku)
	if _, ok, err := settle.Archive(t.Context(), h.stream, h.stores["one"], h.ledger.store, sku); err != nil || !ok {
		t.Fatal(ok, err)
	}
	h.ledger.set(sku, 100)
	h.ledger.open(sku)
	h.ledger.buy(sku, 10, 2)
	h.run(sku, "one")
	if _, err := settle.Move(t.Context(), h.stream, h.settler("two", h.stores["two"]), h.stores["one"], sku); err != nil {
		t.Fatal(err)
	}
	h.ledger.buy(sku, 2, 1) // a serial of the sale before
	h.run(sku, "two")
	gives := func(home string, serials ...string) {
		t.Helper()
		for _, serial := range serials {
			err := h.stores[home].Exec(t.Context(), "INSERT INTO sluice_giveback (sku, serial, asked) VALUES ('twice', '"+
				serial+"', 1)")
			if err != nil {
				t.Fatal(err)
			}
		}
		n, err := h.settler(home, h.stores[home]).GiveBack(t.Context())
		if n != len(serials) || err != nil {
			t.Errorf("%s: %d orders were due, %v: want %d", home, n, err, len(serials))
		}
	}
	conflicts := func(home string) (text string) {
		for _, c := range must(h.stores[home].Conflicts(t.Context(), 10))(t) {
			text += c.Kind + ": " + c.Detail + "\n"
		}
		return text
	}
	for range 2 { // as after a settler that died between
		gives("one", "twice-0", "released")
		if err := h.stores["one"].Exec(t.Context(), "DELETE FROM sluice_giveback WHERE done IS NOT NULL"); err != nil {
			t.Fatal(err)
		}
		if age := must(h.stores["one"].OldestGiveback(t.Context()))(t); age != 0 || conflicts("one") != "" {
			t.Errorf("an order of the earlier sale is not given back: %s", conflicts("one"))
		}
	}
	gives("one", "twice-2", "twice-10")
	if said := conflicts("one"); strings.Count(said, "is settled in two") != 2 {
		t.Errorf("conflicts %s: want two, which name the home of the present sale", said)
	}
	gives("two", "twice-3")
	if said := conflicts("two"); !strings.Contains(said, "an earlier sale in the home that settled that sale") {
		t.Errorf("conflicts %s: want one that names the cause", said)
	}
	status := make(map[string]string)
	err := h.stores["one"].Orders(t.Context(), sku, earlier.Born, func(r settle.Record) {
		status[r.Serial] = r.Status.String()
	})
	want := map[string]string{"twice-0": "refunded", "twice-1": "sold", "twice-2": "sold", "twice-3": "sold",
		"released": "released"}
	if !maps.Equal(status, want) || err != nil {
		t.Errorf("the orders of the earlier sale are %v, %v: want %v", status, err, want)
	}
	h.balances(sku, "two", 3)
}

// A home dies after it has found that Redis lost its orders, and before it has put them back. No other home knows them:
// settlers of the home that the SKU is moved to do not open it.
func TestMove_HomeThatDiedBeforeItToldKeepsTheSKUClosed(t *testing.T) {
	t.Parallel()
	h := newHomes(t, "sqlite:"+filepath.Join(t.TempDir(), "one.db"), "sqlite:"+filepath.Join(t.TempDir(), "two.db"))
	const sku = "closed"
	h.ledger.store.Settle = 0 // open as soon as everybody has told
	h.ledger.set(sku, 100)
	h.ledger.buy(sku, 0, 10)
	h.run(sku, "one")
	before := must(h.stream.Ledgers(t.Context(), []string{sku}))(t)[0]
	if err := h.ledger.of("one").JoinRecovery(t.Context(), sku, before); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := settle.Move(t.Context(), h.stream, h.settler("two", h.stores["two"]), nil, sku)
		if err != nil && !strings.Contains(err.Error(), "it is frozen") {
			t.Fatal(err)
		}
		if opened, err := h.ledger.of("two").Told(t.Context(), sku, h.ledger.epoch(sku)); opened || err != nil {
			t.Fatalf("opened: %v, %v", opened, err)
		}
	}
	epoch := h.ledger.epoch(sku)
	if opened, err := h.ledger.of("one").Told(t.Context(), sku, epoch-1); opened || err != nil {
		t.Errorf("what was compared before it froze has opened it: %v, %v", opened, err)
	}
	if opened, err := h.ledger.of("one").Told(t.Context(), sku, epoch); !opened || err != nil {
		t.Errorf("the home that was waited for has told, and it is %s: %v", h.ledger.state(sku), err)
	}
}

// Redis loses that a SKU was moved: the new home takes it back, the rows of the old one are left behind again, and no
// query counts the orders twice.
func TestMove_LostWithTheTail(t *testing.T) {
	t.Parallel()
	const sku, key = "unmoved", "sluice:shop:{unmoved}:s"
	for _, running := range []bool{false, true} {
		t.Run(fmt.Sprintf("settlers run meanwhile: %v", running), func(t *testing.T) {
			h := newHomes(t, "sqlite:"+filepath.Join(t.TempDir(), "one.db"), "sqlite:"+filepath.Join(t.TempDir(), "two.db"))
			h.ledger.set(sku, 100)
			h.ledger.buy(sku, 0, 3)
			stop := h.start()
			h.settles(sku, "one")
			if !running {
				stop()
			}
			client := h.ledger.server.Client
			before := client.HGet(t.Context(), key, "home").Val()
			two := h.settler("two", h.stores["two"])
			if _, err := settle.Move(t.Context(), h.stream, two, h.stores["one"], sku); err != nil {
				t.Fatal(err)
			}
			h.ledger.buy(sku, 3, 1)
			client.HSet(t.Context(), key, "home", before, "run", "another")
			if !running {
				stop = h.start()
			}
			testkit.Eventually(t, "the mark is put back", func() bool {
				return must(h.stream.Ledgers(t.Context(), []string{sku}))(t)[0].Home == "two"
			})
			h.settles(sku, "two")
			stop()
			h.balances(sku, "two", 4)
		})
	}
}

// The database of the old home comes back from a backup of before the move, while settlers run: its rows are left
// behind again.
func TestMove_OldHomeIsRestored(t *testing.T) {
	t.Parallel()
	h := newHomes(t, "sqlite:"+filepath.Join(t.TempDir(), "one.db"), "sqlite:"+filepath.Join(t.TempDir(), "two.db"))
	const sku = "restored"
	h.ledger.set(sku, 100)
	h.ledger.buy(sku, 0, 3)
	defer h.start()()
	h.settles(sku, "one")
	if _, err := settle.Move(t.Context(), h.stream, h.settler("two", h.stores["two"]), nil, sku); err != nil {
		t.Fatal(err)
	}
	h.settles(sku, "two")
	if err := h.stores["one"].Exec(t.Context(), "UPDATE sluice_cursor SET state = 'on'"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the old home knows again that it has not the SKU", func() bool {
		return h.leftBehind(sku, "two")
	})
	h.balances(sku, "two", 3)
}

// move settles a SKU in a home from now on. from nil = the database of the old one is away.
func (h *homes) move(sku, to string, from settle.Leaver) {
	h.Helper()
	unmarked, err := settle.Move(h.Context(), h.stream, h.settler(to, h.stores[to]), from, sku)
	if err != nil || unmarked != nil {
		h.Fatal(err, unmarked)
	}
}

// remade makes a ledger again after Redis has lost everything, with the orders of a home, as an operator does.
func (h *homes) remade(sku, home string) {
	h.Helper()
	epoch := h.ledger.epoch(sku)
	testkit.Eventually(h.T, "a later epoch can begin", func() bool { return time.Now().UnixMilli() > epoch })
	h.ledger.server.Client.FlushAll(h.Context())
	h.ledger.forget()
	_ = must(h.ledger.store.Recreate(h.Context(), sku, 100, 0, false))(h.T)
	c, _, _ := h.stores[home].Cursor(h.Context(), sku)
	var sold []settle.Record
	_ = h.stores[home].Orders(h.Context(), sku, c.Born, func(r settle.Record) { sold = append(sold, r) })
	if err := h.ledger.Adopt(h.Context(), sku, sold); err != nil {
		h.Fatal(err)
	}
	h.ledger.open(sku)
}

// A ledger that was made again does not know its first epoch, of which the ids of jobs are made: the new home has that
// of the old one.
func TestMove_LedgerMadeAgainKeepsItsBorn(t *testing.T) {
	t.Parallel()
	const sku = "remade"
	for name, settled := range map[string]bool{"settled since, then away": true, "not settled since": false} {
		t.Run(name, func(t *testing.T) {
			h := newHomes(t, "sqlite:"+filepath.Join(t.TempDir(), "one.db"), "sqlite:"+filepath.Join(t.TempDir(), "two.db"))
			h.ledger.set(sku, 100)
			h.ledger.buy(sku, 0, 5)
			h.run(sku, "one")
			first, _, _ := h.stores["one"].Cursor(t.Context(), sku)
			h.remade(sku, "one")
			h.ledger.buy(sku, 5, 2)
			var from settle.Leaver = h.stores["one"]
			if settled {
				h.run(sku, "one")
				from = nil
			}
			h.move(sku, "two", from)
			h.run(sku, "two")
			h.balances(sku, "two", 7)
			if c, _, _ := h.stores["two"].Cursor(t.Context(), sku); c.Born != first.Born || c.Born == 0 {
				t.Errorf("the new home has born %d: want %d", c.Born, first.Born)
			}
		})
	}
}

// A home has settled the sale before. The ledger of the next sale was made again, and moves there: none of its orders
// is of the sale before.
func TestMove_LedgerMadeAgainIsNotTheSaleBefore(t *testing.T) {
	t.Parallel()
	h := newHomes(t, "sqlite:"+filepath.Join(t.TempDir(), "one.db"), "sqlite:"+filepath.Join(t.TempDir(), "two.db"))
	const sku = "next"
	h.ledger.set(sku, 100)
	h.ledger.buy(sku, 0, 5)
	h.run(sku, "one")
	h.move(sku, "two", h.stores["one"])
	h.run(sku, "two")
	h.move(sku, "one", h.stores["two"])
	h.ledger.change(sku, "ended")
	h.run(sku, "one")
	if _, _, err := settle.Archive(t.Context(), h.stream, h.stores["one"], h.ledger.store, sku); err != nil {
		t.Fatal(err)
	}
	h.ledger.set(sku, 100)
	h.ledger.open(sku)
	h.ledger.buy(sku, 10, 3)
	h.run(sku, "one")
	h.remade(sku, "one")
	h.run(sku, "one")
	h.move(sku, "two", h.stores["one"])
	h.run(sku, "two")
	h.balances(sku, "two", 3)
	missing := must(h.stores["two"].Texts(t.Context(), "SELECT detail FROM sluice_conflict"))(t)
	if len(missing) > 0 {
		t.Errorf("conflicts %q: want none", missing)
	}
}

// Redis goes back behind a move. The new home alone knows what was sold and given back since: it takes the SKU back,
// and tells the ledger.
func TestMove_RedisGoesBackBehindIt(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"settlers notice": false, "an operator moves it again": true} {
		t.Run(name, func(t *testing.T) { goesBackBehindMove(t, again) })
	}
}

func goesBackBehindMove(t *testing.T, again bool) {
	h := newHomes(t, "sqlite:"+filepath.Join(t.TempDir(), "one.db"), "sqlite:"+filepath.Join(t.TempDir(), "two.db"))
	const sku = "back"
	h.ledger.set(sku, 100)
	h.ledger.buy(sku, 0, 3)
	h.run(sku, "one")
	goBack := (&site{T: t, redis: h.ledger.server, ledger: h.ledger}).dump(sku)
	h.move(sku, "two", h.stores["one"])
	h.ledger.buy(sku, 3, 2)
	h.run(sku, "two")
	err := h.stores["two"].Exec(t.Context(), "INSERT INTO sluice_giveback (sku, serial) VALUES ('back', 'back-1')")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.settler("two", h.stores["two"]).GiveBack(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.run(sku, "two")
	goBack()
	h.ledger.store.Settle = 0 // open as soon as everybody has told
	if again {
		h.move(sku, "two", h.stores["one"])
	}
	defer h.start()()
	testkit.Eventually(t, "the ledger has what the new home knows", func() bool {
		sold := must(h.stream.Ledgers(t.Context(), []string{sku}))(t)[0].Sold
		return sold == 4 && h.ledger.state(sku) == "on"
	})
	h.settles(sku, "two")
	h.balances(sku, "two", 4)
}
