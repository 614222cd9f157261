package ledger

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"sluice/internal/redistest"
)

func TestAfterARestartNobodyBuysUntilEachInstanceHasLooked(t *testing.T) {
	server, a := durable(t)
	b := connect(t, server, texts())
	takes(t, a, "a")
	takes(t, b, "b")
	restart(t, server)
	for range 3 {
		code, h := takes(t, a, "a2")
		want(t, "before the other has looked", code, NotOnSale)
		want(t, "state", h.State, Doubted)
	}
	code, _ := takes(t, a, "a")
	want(t, "a winner's retry", code, ReplayHeld)
	want(t, "settling", do(t, a, Confirm, "a"), Changed)
	want(t, "what is kept", server.Client.HGet(t.Context(), hashOf1001, "state").Val(), "on")
	must[[]Record](t)(sweepSoon(t, b))
	code, _ = takes(t, a, "a2")
	want(t, "when each has looked", code, Held)
	s := stockOf1001(t, b)
	want(t, "state", s.State, On)
	want(t, "why", s.Why, "")
}

// Redis is asked about one SKU alone at the other instance; the rest it visits by itself.
func TestInstanceThatIsAskedAboutNothingIsNotWaitedForLong(t *testing.T) {
	server, a := durable(t)
	b := connect(t, server, texts())
	takes(t, a, "a")
	takes(t, b, "b")
	must[Stock](t)(b.SetTotal(t.Context(), "another", 1, 0))
	restart(t, server)
	_, h := takes(t, a, "a2")
	want(t, "state", h.State, Doubted)
	until(t, "the other asks about another SKU", func() bool {
		_, _, err := b.Look(t.Context(), "another")
		return err == nil
	})
	until(t, "it goes on", func() bool {
		code, _ := takes(t, a, "a2")
		return code == Held
	})
}

// sweepSoon sweeps as soon as Redis can be reached.
func sweepSoon(t *testing.T, r *Redis) (holds []Record, err error) {
	until(t, "a sweep", func() bool {
		holds, err = r.Sweep(t.Context(), "1001", 1, 2, 1)
		return err == nil
	})
	return holds, nil
}

func TestInstanceThatMissesItsMarkAfterARestartFreezesTheSKUForAll(t *testing.T) {
	server, a := durable(t)
	b := connect(t, server, texts())
	takes(t, a, "a")
	takes(t, b, "b")
	kept := snapshotOf(t, server, "1001")
	takes(t, b, "lost")
	kept.restore(t, server)
	restart(t, server)
	for range 3 {
		code, _ := takes(t, a, "a2")
		want(t, "before the other has looked", code, NotOnSale)
	}
	must[[]Record](t)(sweepSoon(t, b))
	frozen(t, b, lostVersion)
	_, h := takes(t, a, "a2")
	want(t, "state", h.State, Frozen)
	want(t, "adopted", do(t, a, Adopt, "lost"), Changed)
	must[Stock](t)(a.SetState(t.Context(), "1001", On))
	for _, r := range []*Redis{a, b} {
		code, _ := takes(t, r, "after "+r.instance)
		want(t, "reconciled", code, Held)
	}
	want(t, "free", stockOf1001(t, a).Free, 0)
}

// The version alone would not tell: others have sold since.
func TestMarkIsMissedThoughOthersHaveCaughtUpWithTheVersion(t *testing.T) {
	server, a := onRedis(t)
	must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	b := connect(t, server, texts())
	want(t, "before", take(t, b, "before", ""), Held)
	kept := snapshotOf(t, server, "1001")
	want(t, "lost", take(t, b, "lost", ""), Held)
	kept.restore(t, server)
	for i := range 3 {
		want(t, "by who lost nothing", take(t, a, fmt.Sprint("since", i), ""), Held)
	}
	want(t, "by who lost", take(t, b, "new", ""), NotOnSale)
	frozen(t, b, lostMark)
}

func TestInstanceThatIsSilentAfterARestartFreezesTheSKUInTheEnd(t *testing.T) {
	server, a := durable(t)
	b := connect(t, server, texts())
	takes(t, a, "a")
	takes(t, b, "b")
	restart(t, server)
	takes(t, a, "a2")
	for _, ago := range []time.Duration{50 * time.Second, 70 * time.Second} {
		run := must[string](t)(runOf(server))
		since := run + "|" + strconv.FormatInt(time.Now().Add(-ago).UnixMilli(), 10)
		check(t, server.Client.HSet(t.Context(), hashOf1001, "doubt", since).Err())
		_, h := takes(t, a, "a2")
		want(t, "state after "+ago.String(), h.State, map[bool]State{true: Doubted, false: Frozen}[ago < 60*time.Second])
	}
	frozen(t, a, lostSilent)
	must[Stock](t)(connect(t, server, texts()).SetState(t.Context(), "1001", On))
	code, _ := takes(t, a, "a3")
	want(t, "opened by hand, nobody waits for it any more", code, Held)
}

func TestNobodyWaitsForInstancesThatWereGoneBefore(t *testing.T) {
	server, a := durable(t)
	closed, dead, long := connect(t, server, texts()), connect(t, server, texts()), connect(t, server, texts())
	for i, r := range []*Redis{a, closed, dead, long} {
		takes(t, r, fmt.Sprint(i))
	}
	check(t, closed.Close())
	for _, r := range []*Redis{dead, long} {
		at := strconv.FormatInt(time.Now().Add(-61*time.Second).UnixMilli(), 10)
		check(t, server.Client.HSet(t.Context(), hashOf1001, "m:"+r.instance, fmt.Sprint("9|", at, "|", must[string](t)(runOf(server)))).Err())
	}
	restart(t, server)
	code, _ := takes(t, a, "new")
	want(t, "at once", code, Held)
	code, _ = takes(t, long, "0")
	want(t, "one that comes back late", code, ReplayHeld)
	want(t, "why", stockOf1001(t, a).Why, "")
}

// A long outage makes all marks old alike.
func TestALongOutageMakesNobodyGone(t *testing.T) {
	server, a := durable(t)
	b := connect(t, server, texts())
	takes(t, a, "a")
	takes(t, b, "b")
	for _, r := range []*Redis{a, b} {
		field := "m:" + r.instance
		mark := server.Client.HGet(t.Context(), hashOf1001, field).Val()
		var seq, at int64
		var run string
		_, err := fmt.Sscanf(mark, "%d|%d|%s", &seq, &at, &run)
		check(t, err)
		check(t, server.Client.HSet(t.Context(), hashOf1001, field, fmt.Sprintf("%d|%d|%s", seq, at-7_200_000, run)).Err())
	}
	for range 2 {
		restart(t, server) // a second time, before the other has looked
		_, h := takes(t, a, "a2")
		want(t, "state", h.State, Doubted)
	}
	takes(t, b, "b")
	code, _ := takes(t, a, "a2")
	want(t, "when each has looked", code, Held)
}

func TestRedisThatDoesNotTellItsRunIsWatchedByMarksAlone(t *testing.T) {
	server, _ := durable(t)
	restricted := func() *Redis {
		check(t, server.Client.Do(context.Background(), "acl", "setuser", "app", "on", "nopass", "~*", "&*", "+@all", "-info").Err())
		o := optionsFor(server, 2)
		o.Username, o.Password = "app", func() string { return "any" }
		log := &written{}
		o.Log = logTo(log)
		r := must[*Redis](t)(NewRedis(o))
		t.Cleanup(func() { r.Close() })
		takes(t, r, "by "+r.instance)
		want(t, "warnings", log.count("does not tell its run id"), 1)
		return r
	}
	a, b := restricted(), restricted()
	kept := snapshotOf(t, server, "1001")
	takes(t, b, "lost")
	kept.restore(t, server)
	code, _ := takes(t, a, "a")
	want(t, "by who lost nothing", code, Held)
	code, _ = takes(t, b, "b")
	want(t, "by who lost", code, NotOnSale)
	frozen(t, b, lostMark)
}

// runOf is the server's run id.
func runOf(server *redistest.Server) (string, error) {
	info, err := server.Client.InfoMap(context.Background(), "server").Result()
	return info["Server"]["run_id"], err
}
