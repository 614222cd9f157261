package ledger

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
)

const hashOf1001 = "sluice:{1001}:s"

// durable is a Redis that keeps what it has answered, with 5 units of 1001.
func durable(t *testing.T) (*redistest.Server, *Redis) {
	t.Helper()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	r := connect(t, server, texts())
	must[Stock](t)(r.SetTotal(context.Background(), "1001", 5, 0))
	return server, r
}

// restart ends the server as kill -9 does, and starts it on what it has on disk.
func restart(t *testing.T, server *redistest.Server) {
	t.Helper()
	server.Kill()
	server.Restart()
	until(t, "it has read its file", func() bool { return server.Client.Ping(t.Context()).Err() == nil })
}

// takes is take where Redis may still be out of reach.
func takes(t *testing.T, r *Redis, serial string) (code Code, h Hint) {
	t.Helper()
	codes := make([]Code, 1)
	until(t, "an answer", func() (ok bool) {
		var err error
		h, err = r.Reserve(context.Background(), "1001", 0, 1, 1_000, []Item{{serial, "", 1}}, codes)
		return err == nil
	})
	return codes[0], h
}

// frozen fails unless 1001 is frozen for a reason, which r has counted once.
func frozen(t *testing.T, r *Redis, why string) {
	t.Helper()
	s := stockOf1001(t, r)
	want(t, "state", s.State, Frozen)
	want(t, "why", s.Why, why)
	want(t, "alarms", r.lost[why].Load(), 1)
}

func TestMarkThatIsGoneFreezesTheSKUBeforeAUnitIsTaken(t *testing.T) {
	server, r := onRedis(t)
	before := stockOf1001(t, r)
	check(t, server.Client.HDel(t.Context(), hashOf1001, "m:"+r.instance).Err())
	want(t, "reserve", take(t, r, "new", "zoe"), NotOnSale)
	frozen(t, r, lostMark)
	after := stockOf1001(t, r)
	want(t, "units", after.Free, before.Free)
	want(t, "epoch", after.Epoch, before.Epoch+1)
	want(t, "again", take(t, r, "new", "zoe"), NotOnSale)
	want(t, "a winner's retry", take(t, r, "a", "ann"), ReplayHeld)
	want(t, "settling", do(t, r, Confirm, "a"), Changed)
	want(t, "opened by hand", must[Stock](t)(r.SetState(t.Context(), "1001", On)).Why, "")
	want(t, "then", take(t, r, "new", "zoe"), Held)
	frozenOnce := r.lost[lostMark].Load()
	want(t, "alarms", frozenOnce, 1)
}

func TestEveryWayOfCallingNoticesALostMark(t *testing.T) {
	for name, call := range map[string]func(*testing.T, *Redis){
		"reserve": func(t *testing.T, r *Redis) { take(t, r, "new", "zoe") },
		"finish":  func(t *testing.T, r *Redis) { do(t, r, Confirm, "a") },
		"sweep":   func(t *testing.T, r *Redis) { must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1)) },
		"total":   func(t *testing.T, r *Redis) { must[Stock](t)(r.SetTotal(t.Context(), "1001", 9, 2)) },
		"leave":   func(t *testing.T, r *Redis) { r.leave() },
	} {
		t.Run(name, func(t *testing.T) {
			server, r := onRedis(t)
			check(t, server.Client.HSet(t.Context(), hashOf1001, "m:"+r.instance, "1|1|x").Err())
			call(t, r)
			frozen(t, r, lostMark)
		})
	}
}

func TestVersionOrEpochThatWentBackFreezesTheSKU(t *testing.T) {
	for _, fields := range [][]string{{"ver"}, {"epoch"}, {"epoch", "ver"}} {
		server, r := onRedis(t)
		s := stockOf1001(t, r)
		check(t, server.Client.Del(t.Context(), "sluice:{1001}:q").Err()) // or the stream would refuse what went back
		for _, field := range fields {
			check(t, server.Client.HIncrBy(t.Context(), hashOf1001, field, -3).Err())
		}
		want(t, "reserve", take(t, r, "new", "zoe"), NotOnSale)
		frozen(t, r, lostVersion)
		want(t, "units", stockOf1001(t, r).Held, s.Held)
		must[Stock](t)(r.SetState(t.Context(), "1001", On))
		want(t, "opened by hand", take(t, r, "new", "zoe"), Held)
	}
}

func TestCallsMayOvertakeEachOther(t *testing.T) {
	server, _ := onRedis(t)
	r := must[*Redis](t)(NewRedis(optionsFor(server, 20))) // connections for all who call at once
	t.Cleanup(func() { r.Close() })
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 10_000, 0))
	var callers sync.WaitGroup
	for g := range 16 {
		callers.Go(func() {
			for i := range 30 {
				want(t, "reserve", take(t, r, fmt.Sprint(g, "-", i), ""), Held)
			}
		})
	}
	callers.Wait()
	now := r.calls.Swap(0) // the next call's number is 1, as if it had left long ago
	want(t, "a late call", take(t, r, "late", ""), Held)
	r.calls.Store(now)
	want(t, "the next", take(t, r, "next", ""), Held)
	want(t, "why", stockOf1001(t, r).Why, "")
}

func TestLoserWritesItsMarkAlone(t *testing.T) {
	server, r := onRedis(t)
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 2, 2))
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
	want(t, "a loser", take(t, r, "late", "zoe"), SoldOut)
	want(t, "writes", server.Calls("hset")-writes, 1)
	check(t, differ("keys", dump(), before))
}

func TestVisitorLeavesNoMark(t *testing.T) {
	server, r := onRedis(t)
	o := optionsFor(server, 1)
	o.Visitor = true
	visitor := must[*Redis](t)(NewRedis(o))
	must[Stock](t)(visitor.SetTotal(t.Context(), "1001", 7, 2))
	stockOf1001(t, visitor)
	check(t, visitor.Close())
	check(t, r.Close())
	for field := range server.Client.HGetAll(t.Context(), hashOf1001).Val() {
		if strings.HasPrefix(field, "m:") {
			t.Errorf("%s is left", field)
		}
	}
}

func TestMarksOfTheDeadAreForgotten(t *testing.T) {
	server, r := onRedis(t)
	for i := range 40 {
		at := "1"
		if i == 0 {
			at = "99999999999999" // one that lives
		}
		check(t, server.Client.HSet(t.Context(), hashOf1001, fmt.Sprint("m:", i), "7|"+at+"|x").Err())
	}
	must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
	all := server.Client.HGetAll(t.Context(), hashOf1001).Val()
	maps.DeleteFunc(all, func(field, _ string) bool { return !strings.HasPrefix(field, "m:") })
	want(t, "marks", len(all), 2)
	want(t, "reserve", take(t, r, "new", "zoe"), Held)
}

func TestMarkThatMayHaveBeenForgottenIsNotClaimed(t *testing.T) {
	server, r := onRedis(t)
	check(t, server.Client.HDel(t.Context(), hashOf1001, "m:"+r.instance).Err())
	trace := r.traces.find("1001")
	trace.at = trace.at.Add(-claimFor - 1)
	want(t, "reserve", take(t, r, "new", "zoe"), Held)
}

func TestLedgerThatVanishedIsClosedAndNotMadeAnew(t *testing.T) {
	server, r := onRedis(t)
	before := stockOf1001(t, r)
	check(t, server.Client.FlushAll(t.Context()).Err())
	for range 3 {
		code, h := takes(t, r, "new")
		want(t, "reserve", code, NotOnSale)
		want(t, "state", h.State, Lost)
	}
	want(t, "alarms", r.lost[lostKey].Load(), 1)
	if _, _, err := r.Look(t.Context(), "1001"); !errors.Is(err, ErrLost) {
		t.Fatalf("look: %v", err)
	}
	want(t, "a settlement", do(t, r, Confirm, "a"), NoLedger)
	after := must[Stock](t)(r.SetTotal(t.Context(), "1001", 3, 2)) // an operator
	if after.Epoch <= before.Epoch {
		t.Fatalf("epoch %d after %d", after.Epoch, before.Epoch)
	}
	want(t, "reserve", take(t, r, "new", "zoe"), Held)
}

func TestAnOlderLedgerThatIsPutBackDoesNotSell(t *testing.T) {
	server, r := onRedis(t)
	kept := snapshotOf(t, server, "1001")
	want(t, "sold since", take(t, r, "since", "zoe"), Held)
	check(t, server.Client.FlushAll(t.Context()).Err())
	want(t, "while it is gone", take(t, r, "new", "zoe"), NotOnSale)
	kept.restore(t, server)
	want(t, "reserve", take(t, r, "new", "zoe"), NotOnSale)
	frozen(t, r, lostVersion)
}

func TestReasonsAreCounted(t *testing.T) {
	_, r := onRedis(t)
	r.alarm("1001", lostMark, claim{})
	text := scraped(t, r)
	for _, why := range reasons() {
		if !strings.Contains(text, fmt.Sprintf("sluice_ledger_closed_total{why=%q} %d\n", why, r.lost[why].Load())) {
			t.Errorf("no line for %s in\n%s", why, text)
		}
	}
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Error(err, problems)
	}
}

func TestInstanceNamesThatCouldNotBeReadAreRefused(t *testing.T) {
	for _, name := range []string{"a|b", "a b", strings.Repeat("x", 65), "\n"} {
		o := RedisOptions{Events: 1, Instance: name}
		if _, err := NewRedis(o); err == nil || !strings.Contains(err.Error(), "instance") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// snapshot is the keys of a SKU as they were; of a key that was not there it holds "".
type snapshot map[string]string

func snapshotOf(t testing.TB, server *redistest.Server, sku string) snapshot {
	t.Helper()
	s := snapshot{}
	for _, key := range keys(sku) {
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
	check(t, err)
}
