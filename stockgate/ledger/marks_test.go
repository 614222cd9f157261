package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

const hashOf1001 = "sluice:shop:{1001}:s"

// durable is a Redis that keeps what it has answered, with 5 units of 1001.
func durable(t *testing.T) (*redistest.Server, *Store) {
	t.Helper()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	r := connect(t, server, texts())
	testkit.Must[Stock](t)(r.SetTotal(context.Background(), "1001", 5, 0))
	return server, r
}

// restart ends the server as kill -9 does, and starts it on what it has on disk.
func restart(t *testing.T, server *redistest.Server) {
	t.Helper()
	server.Kill()
	server.Restart()
	testkit.Eventually(t, "it has read its file", func() bool { return server.Client.Ping(t.Context()).Err() == nil })
}

// takes is take where Redis may still be out of reach.
func takes(t *testing.T, r *Store, serial string) (code Code, h StockVersion) {
	t.Helper()
	codes := make([]Code, 1)
	testkit.Eventually(t, "an answer", func() (ok bool) {
		var err error
		h, err = r.Reserve(
			context.Background(),
			"1001",
			0,
			1,
			1_000,
			[]Item{{Serial: serial, User: "", Quantity: 1}},
			codes,
		)
		return err == nil
	})
	return codes[0], h
}

// frozen fails unless 1001 is frozen for a reason, which r has counted once.
func frozen(t *testing.T, r *Store, why string) {
	t.Helper()
	s := stockIn(t, r)
	testkit.Want(t, "state", s.State, Frozen)
	testkit.Want(t, "why", s.Why, why)
	testkit.Want(t, "alarms", valueOf(r.lost.WithLabelValues(why)), 1)
}

func TestMarks_MarkThatIsGoneFreezesTheSKUBeforeAUnitIsTaken(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	before := stockIn(t, r)
	testkit.Check(t, server.Client.HDel(t.Context(), hashOf1001, "m:"+r.instance).Err())
	testkit.Want(t, "reserve", takeUnit(t, r, "new", "zoe"), NotOnSale)
	frozen(t, r, lostMark)
	after := stockIn(t, r)
	testkit.Want(t, "units", after.Free, before.Free)
	testkit.Want(t, "epoch", after.Epoch, before.Epoch+1)
	testkit.Want(t, "again", takeUnit(t, r, "new", "zoe"), NotOnSale)
	testkit.Want(t, "a winner's retry", takeUnit(t, r, "a", "ann"), ReplayHeld)
	testkit.Want(t, "settling", finishOne(t, r, Confirm, "a"), Changed)
	testkit.Want(t, "opened by hand", testkit.Must[Stock](t)(r.SetState(t.Context(), "1001", On)).Why, "")
	testkit.Want(t, "then", takeUnit(t, r, "new", "zoe"), Held)
	frozenOnce := valueOf(r.lost.WithLabelValues(lostMark))
	testkit.Want(t, "alarms", frozenOnce, 1)
}

func TestMarks_EveryWayOfCallingNoticesALostMark(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*testing.T, *Store){
		"reserve": func(t *testing.T, r *Store) { takeUnit(t, r, "new", "zoe") },
		"finish":  func(t *testing.T, r *Store) { finishOne(t, r, Confirm, "a") },
		"sweep": func(t *testing.T, r *Store) {
			testkit.Must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
		},
		"total": func(t *testing.T, r *Store) {
			testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 9, 2))
		},
		"leave": func(t *testing.T, r *Store) { r.deregister() },
	} {
		t.Run(name, func(t *testing.T) {
			server, r := onRedis(t)
			testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, "m:"+r.instance, "1|1|x").Err())
			call(t, r)
			frozen(t, r, lostMark)
		})
	}
}

func TestMarks_VersionOrEpochThatWentBackFreezesTheSKU(t *testing.T) {
	t.Parallel()
	for _, fields := range [][]string{{"ver"}, {"epoch"}, {"epoch", "ver"}} {
		server, r := onRedis(t)
		s := stockIn(t, r)
		testkit.Check(
			t,
			server.Client.Del(t.Context(), "sluice:shop:{1001}:q").Err(),
		) // or the stream would refuse what went back
		for _, field := range fields {
			testkit.Check(t, server.Client.HIncrBy(t.Context(), hashOf1001, field, -3).Err())
		}
		testkit.Want(t, "reserve", takeUnit(t, r, "new", "zoe"), NotOnSale)
		frozen(t, r, lostVersion)
		testkit.Want(t, "units", stockIn(t, r).Held, s.Held)
		testkit.Must[Stock](t)(r.SetState(t.Context(), "1001", On))
		testkit.Want(t, "opened by hand", takeUnit(t, r, "new", "zoe"), Held)
	}
}

func TestMarks_CallsMayOvertakeEachOther(t *testing.T) {
	t.Parallel()
	server, _ := onRedis(t)
	r := testkit.Must[*Store](t)(NewStore(optionsFor(server, 20))) // connections for all who call at once
	t.Cleanup(func() { r.Close() })
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 10_000, 0))
	var callers sync.WaitGroup
	for g := range 16 {
		callers.Go(func() {
			for i := range 30 {
				testkit.Want(t, "reserve", takeUnit(t, r, fmt.Sprint(g, "-", i), ""), Held)
			}
		})
	}
	callers.Wait()
	now := r.calls.Swap(0)
	// the next call's number is 1, as if it had left long ago
	testkit.Want(t, "a late call", takeUnit(t, r, "late", ""), Held)
	r.calls.Store(now)
	testkit.Want(t, "the next", takeUnit(t, r, "next", ""), Held)
	testkit.Want(t, "why", stockIn(t, r).Why, "")
}

func TestMarks_LoserWritesItsMarkAlone(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 2, 2))
	dump := func() map[string]string {
		all := map[string]string{}
		for _, key := range keys("1001")[1:] {
			all[key] = server.Client.Dump(t.Context(), key).Val()
		}
		maps.Copy(all, server.Client.HGetAll(t.Context(), hashOf1001).Val())
		delete(all, "m:"+r.instance)
		return all
	}
	before, writes := dump(), server.Calls("hset")
	testkit.Want(t, "a loser", takeUnit(t, r, "late", "zoe"), SoldOut)
	testkit.Want(t, "writes", server.Calls("hset")-writes, 1)
	testkit.Check(t, differ("keys", dump(), before))
}

func TestMarks_VisitorLeavesNoMark(t *testing.T) {
	server, r := onRedis(t)
	o := optionsFor(server, 1)
	o.Visitor = true
	visitor := testkit.Must[*Store](t)(NewStore(o))
	testkit.Must[Stock](t)(visitor.SetTotal(t.Context(), "1001", 7, 2))
	stockIn(t, visitor)
	testkit.Check(t, visitor.Close())
	testkit.Check(t, r.Close())
	for field := range server.Client.HGetAll(t.Context(), hashOf1001).Val() {
		if strings.HasPrefix(field, "m:") {
			t.Errorf("%s is left", field)
		}
	}
}

func TestMarks_OfTheDeadAreForgotten(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	for i := range 40 {
		at := "1"
		if i == 0 {
			at = "99999999999999" // one that lives
		}
		testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, fmt.Sprint("m:", i), "7|"+at+"|x").Err())
	}
	testkit.Must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
	all := server.Client.HGetAll(t.Context(), hashOf1001).Val()
	maps.DeleteFunc(all, func(field, _ string) bool { return !strings.HasPrefix(field, "m:") })
	testkit.Want(t, "marks", len(all), 2)
	testkit.Want(t, "reserve", takeUnit(t, r, "new", "zoe"), Held)
}

func TestMarks_LedgerThatVanishedIsClosedAndNotMadeAnew(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	before := stockIn(t, r)
	testkit.Check(t, server.Client.FlushAll(t.Context()).Err())
	for range 3 {
		code, h := takes(t, r, "new")
		testkit.Want(t, "reserve", code, NotOnSale)
		testkit.Want(t, "state", h.State, Lost)
	}
	testkit.Want(t, "alarms", valueOf(r.lost.WithLabelValues(lostKey)), 1)
	if _, _, err := r.ReadStock(t.Context(), "1001"); !errors.Is(err, ErrLost) {
		t.Fatalf("look: %v", err)
	}
	testkit.Want(t, "a settlement", finishOne(t, r, Confirm, "a"), NoLedger)
	if _, err := r.SetTotal(t.Context(), "1001", 9, 2); !errors.Is(err, ErrLost) {
		t.Fatalf("made as if it had never been: %v", err)
	}
	after := testkit.Must[Stock](t)(r.Recreate(t.Context(), "1001", 9, 2, true)) // an operator
	if after.Epoch < before.Epoch || after.State != Frozen {
		t.Fatalf("%+v after %+v", after, before)
	}
	testkit.Must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
	for range 3 {
		tells(t, r)
	}
	testkit.Must[Stock](t)(r.SetState(t.Context(), "1001", On))
	testkit.Want(t, "reserve", takeUnit(t, r, "new", "zoe"), Held)
}

func TestMarks_ReasonsAreCounted(t *testing.T) {
	_, r := onRedis(t)
	r.alarm("1001", lostMark, Claim{})
	text := testkit.Scrape(t, r)
	for _, why := range lossReasons() {
		n := valueOf(r.lost.WithLabelValues(why))
		if !strings.Contains(text, fmt.Sprintf("sluice_ledger_closed_total{why=%q} %d\n", why, n)) {
			t.Errorf("no line for %s in\n%s", why, text)
		}
	}
}

func TestMarks_RejectInstanceNamesThatCouldNotBeRead(t *testing.T) {
	for _, name := range []string{"a|b", "a b", strings.Repeat("x", 65), "\n"} {
		o := StoreOptions{Name: "shop", Events: 1, Instance: name}
		if _, err := NewStore(o); err == nil || !strings.Contains(err.Error(), "instance") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// snapshot is the keys of a SKU as they were; of a key that was not there it holds "".
type snapshot map[string]string

func snapshotOf(t testing.TB, server *redistest.Server, sku string) snapshot {
	t.Helper()
	s := snapshot{}
	for _, key := range append(keys(sku), queueKeys(sku)...) {
		s[key] = server.Client.Dump(context.Background(), key).Val()
	}
	return s
}

// restore puts the keys back, at once.
func (s snapshot) restore(t testing.TB, server *redistest.Server) {
	t.Helper()
	pipe := server.Client.TxPipeline()
	for key, dump := range s {
		pipe.Unlink(context.Background(), key)
		if dump != "" {
			pipe.Restore(context.Background(), key, 0, dump)
		}
	}
	_, err := pipe.Exec(context.Background())
	testkit.Check(t, err)
}
