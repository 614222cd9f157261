package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// All instances are killed, and Redis restarts without its tail. Instances that return with their journals open the SKU
// by themselves, and the ledger has each order again. Without a journal of one of them the SKU stays closed.
func TestReturn_InstancesThatWereKilledOpenWhatRedisHasLost(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string) error{
		"emptied": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)) },
		"damaged": damagedJournal,
		"whole":   func(string) error { return nil },
	} {
		server, run := redistest.Start(t), "0" // what Redis calls itself
		dirs, stores := []string{t.TempDir(), t.TempDir()}, make([]*Store, 2)
		open := func() {
			for i, dir := range dirs {
				o := optionsFor(server, 2)
				o.StateDir = dir
				o.Identify = func(context.Context, redis.Cmdable) (string, error) { return run, nil }
				stores[i] = testkit.Must[*Store](t)(NewStore(o))
				stores[i].Settle = 0
				stores[i].visits.Wait() // the test alone calls from now on
			}
		}
		kill := func() {
			for _, r := range stores {
				killed(t, r)
			}
		}
		open()
		testkit.Must[Stock](t)(stores[0].SetTotal(t.Context(), "1001", 9, 0))
		takes(t, stores[0], "a")
		takes(t, stores[1], "b")
		kept := snapshotOf(t, server, "1001")
		takes(t, stores[1], "tail")
		kill()
		testkit.Check(t, spoil(dirs[1]))
		kept.restore(t, server)
		run = "1"
		open()
		for range 5 {
			for _, r := range stores {
				testkit.Must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
				tells(t, r)
			}
		}
		s := stockIn(t, stores[0])
		if name == "whole" {
			testkit.Want(t, "opened", s.State, On)
			testkit.Want(t, "tail", statusOf(t, stores[0], "tail"), "H")
		} else if s.State == On {
			t.Errorf("%s: it sells, and an order is missing", name)
		}
		kill()
	}
}

func damagedJournal(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "0*"))
	for _, path := range files {
		text, readErr := os.ReadFile(path)
		if readErr == nil {
			text[len(text)/2] ^= 1
		}
		err = errors.Join(err, readErr, os.WriteFile(path, text, 0o600))
	}
	return err
}

// The process after a damaged journal is another instance, which the log says. The process after that is the same
// instance again. The last damaged file is kept.
func TestReturn_DamagedJournalIsSaidAndKeptBeside(t *testing.T) {
	t.Parallel()
	server, dir, lives := redistest.Start(t), t.TempDir(), 0
	begin := func() (instance, said string) {
		var text bytes.Buffer
		o := optionsFor(server, 2)
		o.StateDir, o.Log = dir, logTo(&text)
		r := testkit.Must[*Store](t)(NewStore(o))
		r.visits.Wait()
		if lives++; lives == 1 {
			testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 99, 0))
		}
		for i := range 4 {
			takes(t, r, fmt.Sprint(lives, "-", i))
		}
		killed(t, r)
		return r.instance, text.String()
	}
	first, _ := begin()
	for range 2 {
		testkit.Check(t, damagedJournal(dir))
		second, said := begin()
		testkit.Want(t, "another instance", second != first, true)
		for _, want := range []string{"server.state_dir is damaged", "0000000", "byte ", "kept=", first} {
			testkit.Want(t, want+" in "+said, strings.Contains(said, want), true)
		}
		third, said := begin()
		testkit.Want(t, "the next process", third, second)
		testkit.Want(t, "it says so again", strings.Contains(said, "damaged"), false)
		kept := testkit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "*", "*", "damaged*")))
		testkit.Want(t, "kept", len(kept), 1)
		first = third
	}
}

// The file of a journal cannot be written any more, as on a full disk: the sale goes on, and the store says what is
// lost.
func TestReturn_JournalThatIsGivenUpIsSaid(t *testing.T) {
	t.Parallel()
	o := optionsFor(redistest.Start(t), 2)
	o.StateDir = t.TempDir()
	r := testkit.Must[*Store](t)(NewStore(o))
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, r, "s1")
	testkit.Want(t, "a journal that is kept", r.Unkept(), "")
	testkit.Check(t, r.journal.out.Close())
	takes(t, r, "s2")
	if said := r.Unkept(); !strings.Contains(said, "given up until the next start") ||
		!strings.Contains(said, "file already closed") {
		t.Errorf("of a journal that is given up it is said: %q", said)
	}
	testkit.Check(t, r.Close())
}

// Two shops have one server.state_dir, and their processes are killed. None returns as an instance of the other shop:
// it would close the SKUs that both have, and put the orders of one into the ledgers of the other.
func TestReturn_ShopsOnOneFolderKeepTheirJournals(t *testing.T) {
	t.Parallel()
	server, dir := redistest.Start(t), t.TempDir()
	begin := func(name redisconn.Name) *Store {
		o := optionsFor(server, 2)
		o.StateDir, o.Name = dir, name
		r := testkit.Must[*Store](t)(NewStore(o))
		r.visits.Wait()
		return r
	}
	a := begin("a")
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "s1")
	killed(t, a)
	b := begin("b")
	testkit.Want(t, "the other shop has seen", len(b.Seen.SKUs()), 0)
	testkit.Want(t, "it knows orders", len(notes(b.Log)), 0)
	again := begin("a")
	testkit.Want(t, "the instance that returns", again.instance, a.instance)
	testkit.Want(t, "its orders", fmt.Sprint(notes(again.Log)), "map[s1:H]")
	killed(t, b)
	killed(t, again)
}

// An instance is killed, Redis loses its tail, and the SKU waits for that instance. What it tells when it returns is
// not older than 23 hours: after longer it vouches for nothing, and an operator opens the SKU.
func TestReturn_AnInstanceThatWasAwayForADayVouchesForNothing(t *testing.T) {
	t.Parallel()
	for away, want := range map[time.Duration]State{time.Hour: On, 25 * time.Hour: Frozen} {
		server := redistest.Start(t)
		dir := t.TempDir()
		a, b := opens(t, server, "0", t.TempDir()), opens(t, server, "0", dir)
		testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 3, 0))
		takes(t, a, "a")
		takes(t, b, "b")
		kept := snapshotOf(t, server, "1001")
		takes(t, b, "tail")
		testkit.Want(t, "the shop has it", finishOne(t, b, Confirm, "tail"), Changed)
		testkit.Must[[]Record](t)(a.Sweep(t.Context(), "1001", 1, 2, 1)) // it sees that version
		killed(t, b)
		kept.restore(t, server)
		for range 3 {
			tellsAt(t, a, time.Now())
		}
		testkit.Want(t, "while b is away", stockIn(t, a).State, Frozen)
		b = opens(t, server, "0", dir)
		for range 3 {
			tellsAt(t, b, time.Now().Add(away))
			tellsAt(t, a, time.Now().Add(away))
		}
		testkit.Want(t, "after "+away.String(), stockIn(t, a).State, want)
		if want == On {
			testkit.Want(t, "the order of the tail", statusOf(t, a, "tail"), "C")
		}
		killed(t, a)
		killed(t, b)
	}
}

// opens returns an instance with a journal, which takes Redis for a server of that name; a visitor where dir is "". The
// test alone calls from now on.
func opens(t *testing.T, server *redistest.Server, run, dir string) *Store {
	t.Helper()
	o := optionsFor(server, 2)
	o.StateDir, o.Visitor = dir, dir == ""
	o.Identify = func(context.Context, redis.Cmdable) (string, error) { return run, nil }
	r := testkit.Must[*Store](t)(NewStore(o))
	r.Settle = 0
	r.visits.Wait()
	return r
}

// tellsAt has an instance call at a time, as it does each second, and tell what it has to tell.
func tellsAt(t *testing.T, r *Store, now time.Time) {
	t.Helper()
	testkit.Must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
	testkit.Must[Result](t)(r.Recover(t.Context(), "1001", now.UnixMilli(), now.Add(KeepReleased).UnixMilli()))
}

// killed ends a store: nothing is told, and no mark is taken away.
func killed(t *testing.T, r *Store) {
	t.Helper()
	r.depart()
	r.visits.Wait()
	testkit.Check(t, r.link.Close())
	testkit.Check(t, r.journal.Close(false))
}

// Redis restarts without its tail while an instance is away that sold an order of it. The SKU is archived only when
// that one has called: the ledger would pass over what it tells.
func TestReturn_NoSaleIsArchivedBeforeEveryInstanceHasCalled(t *testing.T) {
	t.Parallel()
	server, dir := redistest.Start(t), t.TempDir()
	a, b := opens(t, server, "0", t.TempDir()), opens(t, server, "0", dir)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 2, 0))
	takeNow(t, a, "a", "ann")
	takeNow(t, b, "b", "bob")
	testkit.Want(t, "b", finishOne(t, b, Refund, "b"), Changed)
	kept := snapshotOf(t, server, "1001")
	takeNow(t, b, "tail", "bob")
	killed(t, b)
	killed(t, a)
	kept.restore(t, server)
	a = opens(t, server, "1", t.TempDir())
	operator := opens(t, server, "1", "")
	archives := func() error {
		for range 2 {
			testkit.Must[[]Record](t)(a.Sweep(t.Context(), "1001", 1, 2, 1))
		}
		over := stockIn(t, operator)
		return operator.Archive(t.Context(), "1001", over.Epoch, over.Ver)
	}
	testkit.Must[Stock](t)(operator.SetState(t.Context(), "1001", Ended))
	if err := archives(); !errors.Is(err, notArchived[5]) {
		t.Errorf("while an instance is away: %v, want %v", err, notArchived[5])
	}
	b = opens(t, server, "1", dir)
	for range 4 {
		for _, r := range []*Store{a, b} {
			testkit.Must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
			tells(t, r)
		}
	}
	testkit.Want(t, "the order of the tail", statusOf(t, operator, "tail"), "C")
	killed(t, a)
	killed(t, b)
	testkit.Check(t, operator.Close())
}

// Redis loses its tail. An instance puts it back at once, and waits for another one, which returns after a day and has
// taken no order since its last call. Nothing is missing: the SKU opens.
func TestReturn_WhoHasToldInTimeVouchesLater(t *testing.T) {
	t.Parallel()
	server, dir := redistest.Start(t), t.TempDir()
	a, b := opens(t, server, "0", t.TempDir()), opens(t, server, "0", dir)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 3, 0))
	testkit.Must[[]Record](t)(b.Sweep(t.Context(), "1001", 1, 2, 1))
	kept := snapshotOf(t, server, "1001")
	takes(t, a, "tail")
	testkit.Must[[]Record](t)(b.Sweep(t.Context(), "1001", 1, 2, 1))
	killed(t, b)
	kept.restore(t, server)
	for range 3 {
		tellsAt(t, a, time.Now())
	}
	testkit.Want(t, "while b is away", stockIn(t, a).State, Frozen)
	b = opens(t, server, "0", dir)
	for range 4 {
		for _, r := range []*Store{b, a} {
			tellsAt(t, r, time.Now().Add(25*time.Hour))
		}
	}
	testkit.Want(t, "when b has told", stockIn(t, a).State, On)
	testkit.Want(t, "the order of the tail", statusOf(t, a, "tail"), "H")
	killed(t, a)
	killed(t, b)
}

// A gateway is gone for good, Redis restarts, and the SKU freezes, since that one does not call. What an operator says
// who has looked at the shop stands, and an ended SKU is archived.
func TestReturn_WhatAnOperatorSaysOfAFrozenSKUStands(t *testing.T) {
	t.Parallel()
	for _, state := range []State{Paused, Ended} {
		server := redistest.Start(t)
		a, gone := opens(t, server, "0", t.TempDir()), opens(t, server, "0", t.TempDir())
		testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 2, 0))
		takeNow(t, gone, "b", "bob")
		killed(t, gone)
		killed(t, a)
		a = opens(t, server, "1", t.TempDir())
		sweep := func() { testkit.Must[[]Record](t)(a.Sweep(t.Context(), "1001", 1, 2, 1)) }
		sweep()
		ago := fmt.Sprintf("1|%d", time.Now().Add(-2*time.Minute).UnixMilli())
		testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, "doubt", ago).Err())
		sweep()
		frozen := stockIn(t, a)
		testkit.Want(t, "after a minute", frozen.State, Frozen)
		if err := a.Archive(t.Context(), "1001", frozen.Epoch, frozen.Ver); !errors.Is(err, notArchived[6]) {
			t.Errorf("archive what is frozen: %v, want %v", err, notArchived[6])
		}
		testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", state))
		sweep()
		s := stockIn(t, a)
		testkit.Want(t, "a second later", s.State, state)
		if state == Ended {
			testkit.Check(t, a.Archive(t.Context(), "1001", s.Epoch, s.Ver))
		}
		killed(t, a)
	}
}

// A gateway that crashed a day before Redis restarts has nothing to tell: an archive does not wait for it.
func TestReturn_AnOldCrashKeepsNoSaleFromItsArchive(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := opens(t, server, "0", t.TempDir())
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 2, 0))
	takeNow(t, a, "a", "ann")
	testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", Ended))
	killed(t, a)
	operator := opens(t, server, "1", "")
	s := stockIn(t, operator)
	if err := operator.Archive(t.Context(), "1001", s.Epoch, s.Ver); !errors.Is(err, notArchived[5]) {
		t.Errorf("at once: %v, want %v", err, notArchived[5])
	}
	ago := fmt.Sprintf("9|%d|0", time.Now().Add(-25*time.Hour).UnixMilli())
	testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, "m:"+a.instance, ago).Err())
	testkit.Check(t, operator.Archive(t.Context(), "1001", s.Epoch, s.Ver))
	testkit.Check(t, operator.Close())
}

// An instance leaves in order after its last order, and a fail-over loses both. The next process on its folder tells
// for it. Where nothing was lost, it is one like any other.
func TestReturn_InstanceThatLeftTellsWhatAFailOverHasLost(t *testing.T) {
	t.Parallel()
	for _, loses := range []bool{true, false} {
		server, dir, others := redistest.Start(t), t.TempDir(), t.TempDir()
		leaver, other := opens(t, server, "0", dir), opens(t, server, "0", others)
		testkit.Must[Stock](t)(leaver.SetTotal(t.Context(), "1001", 9, 0))
		takes(t, leaver, "a")
		takes(t, other, "b")
		kept := snapshotOf(t, server, "1001")
		takes(t, leaver, "tail")
		testkit.Check(t, leaver.Close())
		if loses {
			kept.restore(t, server)
		}
		killed(t, other) // and meets another server
		other = opens(t, server, "1", others)
		next := opens(t, server, "1", dir)
		testkit.Want(t, "name", next.instance, leaver.instance)
		testkit.Eventually(t, "the SKU sells again", func() bool {
			tellsAt(t, next, time.Now())
			tellsAt(t, other, time.Now())
			code, _ := takes(t, other, "new")
			return code == Held || code == ReplayHeld
		})
		testkit.Want(t, "tail", statusOf(t, other, "tail"), "H")
		lost := int64(0)
		for _, why := range lossReasons() {
			lost += valueOf(next.lost.WithLabelValues(why)) + valueOf(other.lost.WithLabelValues(why))
		}
		testkit.Want(t, "alarms", lost > 0, loses)
		testkit.Check(t, errors.Join(next.Close(), other.Close()))
	}
}
