package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

func TestRestart_ClosesTheSKUUntilEachInstanceHasLooked(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	restart(t, server)
	for range 3 {
		code, h := takes(t, a, "a2")
		ledgertest.Want(t, "before the other has looked", code, protocol.NotOnSale)
		ledgertest.Want(t, "state", h.State, protocol.Verifying)
	}
	code, _ := takes(t, a, "a")
	ledgertest.Want(t, "a winner's retry", code, protocol.ReplayHeld)
	ledgertest.Want(t, "settling", ledgertest.Finish(t, a, protocol.Confirm, "a"), protocol.Changed)
	ledgertest.Want(t, "what is kept", server.Client.HGet(t.Context(), hashOf1001, "state").Val(), "on")
	ledgertest.Must[[]protocol.Record](t)(sweepSoon(t, b))
	code, _ = takes(t, a, "a2")
	ledgertest.Want(t, "when each has looked", code, protocol.Held)
	s := ledgertest.StockOf(t, b)
	ledgertest.Want(t, "state", s.State, protocol.On)
	ledgertest.Want(t, "why", s.Why, "")
}

// TestServers_InstanceThatIsAskedAboutNothingIsNotWaitedForLong is asked about one SKU alone at the other instance;
// the rest it visits by itself.
func TestServers_InstanceThatIsAskedAboutNothingIsNotWaitedForLong(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	ledgertest.Must[protocol.Stock](t)(b.SetTotal(t.Context(), "another", 1, 0))
	restart(t, server)
	_, h := takes(t, a, "a2")
	ledgertest.Want(t, "state", h.State, protocol.Verifying)
	ledgertest.Until(t, "the other asks about another SKU", func() bool {
		_, _, err := b.ReadStock(t.Context(), "another")
		return err == nil
	})
	ledgertest.Until(t, "it goes on", func() bool {
		code, _ := takes(t, a, "a2")
		return code == protocol.Held
	})
}

// sweepSoon sweeps as soon as Redis can be reached.
func sweepSoon(t *testing.T, r *Store) (holds []protocol.Record, err error) {
	ledgertest.Until(t, "a sweep", func() bool {
		holds, err = r.Sweep(t.Context(), "1001", 1, 2, 1)
		return err == nil
	})
	return holds, nil
}

func TestServers_InstanceThatMissesItsMarkAfterARestartFreezesTheSKUForAll(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	kept := snapshotOf(t, server, "1001")
	takes(t, b, "lost")
	kept.restore(t, server)
	restart(t, server)
	for range 3 {
		code, _ := takes(t, a, "a2")
		ledgertest.Want(t, "before the other has looked", code, protocol.NotOnSale)
	}
	ledgertest.Must[[]protocol.Record](t)(sweepSoon(t, b))
	frozen(t, b, failover.LostVersion)
	_, h := takes(t, a, "a2")
	ledgertest.Want(t, "state", h.State, protocol.Frozen)
	ledgertest.Want(t, "adopted", ledgertest.Finish(t, a, protocol.Adopt, "lost"), protocol.Changed)
	ledgertest.Must[protocol.Stock](t)(a.SetState(t.Context(), "1001", protocol.On))
	for _, r := range []*Store{a, b} {
		code, _ := takes(t, r, "after "+r.instance)
		ledgertest.Want(t, "reconciled", code, protocol.Held)
	}
	ledgertest.Want(t, "free", ledgertest.StockOf(t, a).Free, 0)
}

// The version alone would not tell: others have sold since.
func TestServers_MarkIsMissedThoughOthersHaveCaughtUpWithTheVersion(t *testing.T) {
	server, a := onRedis(t)
	ledgertest.Must[protocol.Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	b := single(t, server)
	ledgertest.Want(t, "before", ledgertest.Take(t, b, "before", ""), protocol.Held)
	kept := snapshotOf(t, server, "1001")
	ledgertest.Want(t, "lost", ledgertest.Take(t, b, "lost", ""), protocol.Held)
	kept.restore(t, server)
	for i := range 3 {
		ledgertest.Want(t, "by who lost nothing", ledgertest.Take(t, a, fmt.Sprint("since", i), ""), protocol.Held)
	}
	ledgertest.Want(t, "by who lost", ledgertest.Take(t, b, "new", ""), protocol.NotOnSale)
	frozen(t, b, failover.LostMark)
}

func TestServers_InstanceThatIsSilentAfterARestartFreezesTheSKUInTheEnd(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	restart(t, server)
	takes(t, a, "a2")
	for _, ago := range []time.Duration{50 * time.Second, 70 * time.Second} {
		run := ledgertest.Must[string](t)(runOf(server))
		since := run + "|" + strconv.FormatInt(time.Now().Add(-ago).UnixMilli(), 10)
		ledgertest.Check(t, server.Client.HSet(t.Context(), hashOf1001, "doubt", since).Err())
		_, h := takes(t, a, "a2")
		ledgertest.Want(
			t,
			"state after "+ago.String(),
			h.State,
			map[bool]protocol.State{true: protocol.Verifying, false: protocol.Frozen}[ago < 60*time.Second],
		)
	}
	frozen(t, a, failover.LostSilent)
	ledgertest.Must[protocol.Stock](t)(connect(t, server, texts()).SetState(t.Context(), "1001", protocol.On))
	code, _ := takes(t, a, "a3")
	ledgertest.Want(t, "opened by hand, nobody waits for it any more", code, protocol.Held)
}

// Redis' clock was a day ahead for a moment. What it wrote then is no reason to wait for a day, nor to take an instance
// for one that is long gone.
func TestRestart_TimesOfAClockThatRanAheadAreNotBelieved(t *testing.T) {
	server, a := durable(t)
	b, dead := single(t, server), single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	takes(t, dead, "dead")
	tomorrow := strconv.FormatInt(time.Now().Add(24*time.Hour).UnixMilli(), 10)
	ledgertest.Check(t, server.Client.HSet(t.Context(), hashOf1001, "m:"+dead.instance, "1|"+tomorrow+"|"+
		ledgertest.Must[string](t)(runOf(server))).Err())
	restart(t, server)
	takes(t, a, "a2")
	run := ledgertest.Must[string](t)(runOf(server))
	if mark := server.Client.HGet(t.Context(), hashOf1001, "m:"+b.instance).Val(); strings.HasSuffix(mark, run) {
		t.Errorf("the mark %s of an instance that has not called says that it has", mark)
	}
	ledgertest.Check(t, server.Client.HSet(t.Context(), hashOf1001, "doubt", run+"|"+tomorrow).Err())
	_, h := takes(t, a, "a2")
	ledgertest.Want(t, "state", h.State, protocol.Verifying)
	if doubt := server.Client.HGet(t.Context(), hashOf1001, "doubt").Val(); doubt >= run+"|"+tomorrow {
		t.Errorf("it is verified until %s", doubt)
	}
}

func TestRestart_DoesNotWaitForInstancesThatEndedBefore(t *testing.T) {
	server, a := durable(t)
	closed, dead, long := connect(t, server, texts()), connect(t, server, texts()), connect(t, server, texts())
	for i, r := range []*Store{a, closed, dead, long} {
		takes(t, r, fmt.Sprint(i))
	}
	ledgertest.Check(t, closed.Close())
	for _, r := range []*Store{dead, long} {
		at := strconv.FormatInt(time.Now().Add(-61*time.Second).UnixMilli(), 10)
		ledgertest.Check(
			t,
			server.Client.HSet(
				t.Context(),
				hashOf1001,
				"m:"+r.instance,
				fmt.Sprint("9|", at, "|", ledgertest.Must[string](t)(runOf(server))),
			).Err(),
		)
	}
	restart(t, server)
	code, _ := takes(t, a, "new")
	ledgertest.Want(t, "at once", code, protocol.Held)
	code, _ = takes(t, long, "0")
	ledgertest.Want(t, "one that comes back late", code, protocol.ReplayHeld)
	ledgertest.Want(t, "why", ledgertest.StockOf(t, a).Why, "")
}

// A long outage makes all marks old alike.
func TestOutage_EndsNoInstance(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	for _, r := range []*Store{a, b} {
		field := "m:" + r.instance
		mark := server.Client.HGet(t.Context(), hashOf1001, field).Val()
		var seq, at int64
		var run string
		_, err := fmt.Sscanf(mark, "%d|%d|%s", &seq, &at, &run)
		ledgertest.Check(t, err)
		ledgertest.Check(
			t,
			server.Client.HSet(t.Context(), hashOf1001, field, fmt.Sprintf("%d|%d|%s", seq, at-7_200_000, run)).Err(),
		)
	}
	for range 2 {
		restart(t, server) // a second time, before the other has looked
		_, h := takes(t, a, "a2")
		ledgertest.Want(t, "state", h.State, protocol.Verifying)
	}
	takes(t, b, "b")
	code, _ := takes(t, a, "a2")
	ledgertest.Want(t, "when each has looked", code, protocol.Held)
}

func TestServers_RedisThatDoesNotTellItsRunIsWatchedByMarksAlone(t *testing.T) {
	server, _ := durable(t)
	restricted := func() *Store {
		ledgertest.Check(
			t,
			server.Client.Do(
				context.Background(),
				"acl",
				"setuser",
				"app",
				"on",
				"nopass",
				"~*",
				"&*",
				"+@all",
				"-info",
			).Err(),
		)
		o := optionsFor(server, 2)
		o.Username, o.Password = "app", func() string { return "any" }
		log := &testkit.Log{}
		o.Log = ledgertest.LogTo(log)
		r := ledgertest.Must[*Store](t)(New(o))
		t.Cleanup(func() { r.Close() })
		takes(t, r, "by "+r.instance)
		ledgertest.Want(t, "warnings", log.Count("does not tell its run id"), 1)
		return r
	}
	a, b := restricted(), restricted()
	kept := snapshotOf(t, server, "1001")
	takes(t, b, "lost")
	kept.restore(t, server)
	code, _ := takes(t, a, "a")
	ledgertest.Want(t, "by who lost nothing", code, protocol.Held)
	code, _ = takes(t, b, "b")
	ledgertest.Want(t, "by who lost", code, protocol.NotOnSale)
	frozen(t, b, failover.LostMark)
}

// runOf is the server's run id.
func runOf(server *redistest.Server) (string, error) {
	info, err := server.Client.InfoMap(context.Background(), "server").Result()
	return info["Server"]["run_id"], err
}
