package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

const hashOf1001 = "sluice:shop:{1001}:s"

// durable is a Redis that keeps what it has answered, with 5 units of 1001.
func durable(t *testing.T) (*redistest.Server, *Store) {
	t.Helper()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	r := connect(t, server, texts())
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(context.Background(), "1001", 5, 0))
	return server, r
}

// restart ends the server as kill -9 does, and starts it on what it has on disk.
func restart(t *testing.T, server *redistest.Server) {
	t.Helper()
	server.Kill()
	server.Restart()
	ledgertest.Until(t, "it has read its file", func() bool { return server.Client.Ping(t.Context()).Err() == nil })
}

// takes is take where Redis may still be out of reach.
func takes(t *testing.T, r *Store, serial string) (code protocol.Code, h protocol.StockVersion) {
	t.Helper()
	codes := make([]protocol.Code, 1)
	ledgertest.Until(t, "an answer", func() (ok bool) {
		var err error
		h, err = r.Reserve(
			context.Background(),
			"1001",
			0,
			1,
			1_000,
			[]protocol.Item{{Serial: serial, User: "", Quantity: 1}},
			codes,
		)
		return err == nil
	})
	return codes[0], h
}

// frozen fails unless 1001 is frozen for a reason, which r has counted once.
func frozen(t *testing.T, r *Store, why string) {
	t.Helper()
	s := ledgertest.StockOf(t, r)
	ledgertest.Want(t, "state", s.State, protocol.Frozen)
	ledgertest.Want(t, "why", s.Why, why)
	ledgertest.Want(t, "alarms", ledgertest.Value(r.lost.WithLabelValues(why)), 1)
}

func TestMarks_MarkThatIsGoneFreezesTheSKUBeforeAUnitIsTaken(t *testing.T) {
	server, r := onRedis(t)
	before := ledgertest.StockOf(t, r)
	ledgertest.Check(t, server.Client.HDel(t.Context(), hashOf1001, "m:"+r.instance).Err())
	ledgertest.Want(t, "reserve", ledgertest.Take(t, r, "new", "zoe"), protocol.NotOnSale)
	frozen(t, r, failover.LostMark)
	after := ledgertest.StockOf(t, r)
	ledgertest.Want(t, "units", after.Free, before.Free)
	ledgertest.Want(t, "epoch", after.Epoch, before.Epoch+1)
	ledgertest.Want(t, "again", ledgertest.Take(t, r, "new", "zoe"), protocol.NotOnSale)
	ledgertest.Want(t, "a winner's retry", ledgertest.Take(t, r, "a", "ann"), protocol.ReplayHeld)
	ledgertest.Want(t, "settling", ledgertest.Finish(t, r, protocol.Confirm, "a"), protocol.Changed)
	ledgertest.Want(
		t,
		"opened by hand",
		ledgertest.Must[protocol.Stock](t)(r.SetState(t.Context(), "1001", protocol.On)).Why,
		"",
	)
	ledgertest.Want(t, "then", ledgertest.Take(t, r, "new", "zoe"), protocol.Held)
	frozenOnce := ledgertest.Value(r.lost.WithLabelValues(failover.LostMark))
	ledgertest.Want(t, "alarms", frozenOnce, 1)
}

func TestMarks_EveryWayOfCallingNoticesALostMark(t *testing.T) {
	for name, call := range map[string]func(*testing.T, *Store){
		"reserve": func(t *testing.T, r *Store) { ledgertest.Take(t, r, "new", "zoe") },
		"finish":  func(t *testing.T, r *Store) { ledgertest.Finish(t, r, protocol.Confirm, "a") },
		"sweep": func(t *testing.T, r *Store) {
			ledgertest.Must[[]protocol.Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
		},
		"total": func(t *testing.T, r *Store) {
			ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 9, 2))
		},
		"leave": func(t *testing.T, r *Store) { r.deregister() },
	} {
		t.Run(name, func(t *testing.T) {
			server, r := onRedis(t)
			ledgertest.Check(t, server.Client.HSet(t.Context(), hashOf1001, "m:"+r.instance, "1|1|x").Err())
			call(t, r)
			frozen(t, r, failover.LostMark)
		})
	}
}

func TestMarks_VersionOrEpochThatWentBackFreezesTheSKU(t *testing.T) {
	for _, fields := range [][]string{{"ver"}, {"epoch"}, {"epoch", "ver"}} {
		server, r := onRedis(t)
		s := ledgertest.StockOf(t, r)
		ledgertest.Check(
			t,
			server.Client.Del(t.Context(), "sluice:shop:{1001}:q").Err(),
		) // or the stream would refuse what went back
		for _, field := range fields {
			ledgertest.Check(t, server.Client.HIncrBy(t.Context(), hashOf1001, field, -3).Err())
		}
		ledgertest.Want(t, "reserve", ledgertest.Take(t, r, "new", "zoe"), protocol.NotOnSale)
		frozen(t, r, failover.LostVersion)
		ledgertest.Want(t, "units", ledgertest.StockOf(t, r).Held, s.Held)
		ledgertest.Must[protocol.Stock](t)(r.SetState(t.Context(), "1001", protocol.On))
		ledgertest.Want(t, "opened by hand", ledgertest.Take(t, r, "new", "zoe"), protocol.Held)
	}
}

func TestMarks_CallsMayOvertakeEachOther(t *testing.T) {
	server, _ := onRedis(t)
	r := ledgertest.Must[*Store](t)(New(optionsFor(server, 20))) // connections for all who call at once
	t.Cleanup(func() { r.Close() })
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 10_000, 0))
	var callers sync.WaitGroup
	for g := range 16 {
		callers.Go(func() {
			for i := range 30 {
				ledgertest.Want(t, "reserve", ledgertest.Take(t, r, fmt.Sprint(g, "-", i), ""), protocol.Held)
			}
		})
	}
	callers.Wait()
	now := r.calls.Swap(0)
	ledgertest. // the next call's number is 1, as if it had left long ago
			Want(t, "a late call", ledgertest.Take(t, r, "late", ""), protocol.Held)
	r.calls.Store(now)
	ledgertest.Want(t, "the next", ledgertest.Take(t, r, "next", ""), protocol.Held)
	ledgertest.Want(t, "why", ledgertest.StockOf(t, r).Why, "")
}

func TestMarks_LoserWritesItsMarkAlone(t *testing.T) {
	server, r := onRedis(t)
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 2, 2))
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
	ledgertest.Want(t, "a loser", ledgertest.Take(t, r, "late", "zoe"), protocol.SoldOut)
	ledgertest.Want(t, "writes", server.Calls("hset")-writes, 1)
	ledgertest.Check(t, ledgertest.Differ("keys", dump(), before))
}

func TestMarks_VisitorLeavesNoMark(t *testing.T) {
	server, r := onRedis(t)
	o := optionsFor(server, 1)
	o.Visitor = true
	visitor := ledgertest.Must[*Store](t)(New(o))
	ledgertest.Must[protocol.Stock](t)(visitor.SetTotal(t.Context(), "1001", 7, 2))
	ledgertest.StockOf(t, visitor)
	ledgertest.Check(t, visitor.Close())
	ledgertest.Check(t, r.Close())
	for field := range server.Client.HGetAll(t.Context(), hashOf1001).Val() {
		if strings.HasPrefix(field, "m:") {
			t.Errorf("%s is left", field)
		}
	}
}

func TestMarks_OfTheDeadAreForgotten(t *testing.T) {
	server, r := onRedis(t)
	for i := range 40 {
		at := "1"
		if i == 0 {
			at = "99999999999999" // one that lives
		}
		ledgertest.Check(t, server.Client.HSet(t.Context(), hashOf1001, fmt.Sprint("m:", i), "7|"+at+"|x").Err())
	}
	ledgertest.Must[[]protocol.Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
	all := server.Client.HGetAll(t.Context(), hashOf1001).Val()
	maps.DeleteFunc(all, func(field, _ string) bool { return !strings.HasPrefix(field, "m:") })
	ledgertest.Want(t, "marks", len(all), 2)
	ledgertest.Want(t, "reserve", ledgertest.Take(t, r, "new", "zoe"), protocol.Held)
}

func TestMarks_LedgerThatVanishedIsClosedAndNotMadeAnew(t *testing.T) {
	server, r := onRedis(t)
	before := ledgertest.StockOf(t, r)
	ledgertest.Check(t, server.Client.FlushAll(t.Context()).Err())
	for range 3 {
		code, h := takes(t, r, "new")
		ledgertest.Want(t, "reserve", code, protocol.NotOnSale)
		ledgertest.Want(t, "state", h.State, protocol.Lost)
	}
	ledgertest.Want(t, "alarms", ledgertest.Value(r.lost.WithLabelValues(failover.LostKey)), 1)
	if _, _, err := r.ReadStock(t.Context(), "1001"); !errors.Is(err, protocol.ErrLost) {
		t.Fatalf("look: %v", err)
	}
	ledgertest.Want(t, "a settlement", ledgertest.Finish(t, r, protocol.Confirm, "a"), protocol.NoLedger)
	if _, err := r.SetTotal(t.Context(), "1001", 9, 2); !errors.Is(err, protocol.ErrLost) {
		t.Fatalf("made as if it had never been: %v", err)
	}
	after := ledgertest.Must[protocol.Stock](t)(r.Recreate(t.Context(), "1001", 9, 2, true)) // an operator
	if after.Epoch < before.Epoch || after.State != protocol.Frozen {
		t.Fatalf("%+v after %+v", after, before)
	}
	ledgertest.Must[[]protocol.Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
	for range 3 {
		tells(t, r)
	}
	ledgertest.Must[protocol.Stock](t)(r.SetState(t.Context(), "1001", protocol.On))
	ledgertest.Want(t, "reserve", ledgertest.Take(t, r, "new", "zoe"), protocol.Held)
}

func TestMarks_OlderLedgerThatIsPutBackDoesNotSell(t *testing.T) {
	server, r := onRedis(t)
	kept := snapshotOf(t, server, "1001")
	ledgertest.Want(t, "sold since", ledgertest.Take(t, r, "since", "zoe"), protocol.Held)
	ledgertest.Check(t, server.Client.FlushAll(t.Context()).Err())
	ledgertest.Want(t, "while it is gone", ledgertest.Take(t, r, "new", "zoe"), protocol.NotOnSale)
	kept.restore(t, server)
	ledgertest.Want(t, "reserve", ledgertest.Take(t, r, "new", "zoe"), protocol.NotOnSale)
	frozen(t, r, failover.LostVersion)
}

func TestMarks_ReasonsAreCounted(t *testing.T) {
	_, r := onRedis(t)
	r.alarm("1001", failover.LostMark, failover.Claim{})
	text := ledgertest.Scrape(t, r)
	for _, why := range failover.LossReasons() {
		n := ledgertest.Value(r.lost.WithLabelValues(why))
		if !strings.Contains(text, fmt.Sprintf("sluice_ledger_closed_total{why=%q} %d\n", why, n)) {
			t.Errorf("no line for %s in\n%s", why, text)
		}
	}
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Error(err, problems)
	}
}

func TestMarks_RejectInstanceNamesThatCouldNotBeRead(t *testing.T) {
	for _, name := range []string{"a|b", "a b", strings.Repeat("x", 65), "\n"} {
		o := Options{Name: "shop", Events: 1, Instance: name}
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "instance") {
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
	ledgertest.Check(t, err)
}
