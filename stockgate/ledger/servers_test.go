package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

func TestRestart_ClosesTheSKUUntilEachInstanceHasLooked(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	restart(t, server)
	for range 3 {
		code, h := takes(t, a, "a2")
		testkit.Want(t, "before the other has looked", code, NotOnSale)
		testkit.Want(t, "state", h.State, Verifying)
	}
	code, _ := takes(t, a, "a")
	testkit.Want(t, "a winner's retry", code, ReplayHeld)
	testkit.Want(t, "settling", finishOne(t, a, Confirm, "a"), Changed)
	testkit.Want(t, "what is kept", server.Client.HGet(t.Context(), hashOf1001, "state").Val(), "on")
	testkit.Must[[]Record](t)(sweepSoon(t, b))
	code, _ = takes(t, a, "a2")
	testkit.Want(t, "when each has looked", code, Held)
	s := stockIn(t, b)
	testkit.Want(t, "state", s.State, On)
	testkit.Want(t, "why", s.Why, "")
}

// TestServers_InstanceThatIsAskedAboutNothingIsNotWaitedForLong is asked about one SKU alone at the other instance;
// the rest it visits by itself.
func TestServers_InstanceThatIsAskedAboutNothingIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	testkit.Must[Stock](t)(b.SetTotal(t.Context(), "another", 1, 0))
	restart(t, server)
	_, h := takes(t, a, "a2")
	testkit.Want(t, "state", h.State, Verifying)
	testkit.Eventually(t, "the other asks about another SKU", func() bool {
		_, _, err := b.ReadStock(t.Context(), "another")
		return err == nil
	})
	testkit.Eventually(t, "it goes on", func() bool {
		code, _ := takes(t, a, "a2")
		return code == Held
	})
}

// sweepSoon sweeps as soon as Redis can be reached.
func sweepSoon(t *testing.T, r *Store) (holds []Record, err error) {
	testkit.Eventually(t, "a sweep", func() bool {
		holds, err = r.Sweep(t.Context(), "1001", 1, 2, 1)
		return err == nil
	})
	return holds, nil
}

func TestServers_InstanceThatMissesItsMarkAfterARestartFreezesTheSKUForAll(t *testing.T) {
	t.Parallel()
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
		testkit.Want(t, "before the other has looked", code, NotOnSale)
	}
	testkit.Must[[]Record](t)(sweepSoon(t, b))
	frozen(t, b, lostVersion)
	_, h := takes(t, a, "a2")
	testkit.Want(t, "state", h.State, Frozen)
	testkit.Want(t, "adopted", finishOne(t, a, Adopt, "lost"), Changed)
	testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", On))
	for _, r := range []*Store{a, b} {
		code, _ := takes(t, r, "after "+r.instance)
		testkit.Want(t, "reconciled", code, Held)
	}
	testkit.Want(t, "free", stockIn(t, a).Free, 0)
}

// The version alone would not tell: others have sold since.
func TestServers_MarkIsMissedThoughOthersHaveCaughtUpWithTheVersion(t *testing.T) {
	t.Parallel()
	server, a := onRedis(t)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	b := single(t, server)
	testkit.Want(t, "before", takeUnit(t, b, "before", ""), Held)
	kept := snapshotOf(t, server, "1001")
	testkit.Want(t, "lost", takeUnit(t, b, "lost", ""), Held)
	kept.restore(t, server)
	for i := range 3 {
		testkit.Want(t, "by who lost nothing", takeUnit(t, a, fmt.Sprint("since", i), ""), Held)
	}
	testkit.Want(t, "by who lost", takeUnit(t, b, "new", ""), NotOnSale)
	frozen(t, b, lostMark)
}

func TestServers_InstanceThatIsSilentAfterARestartFreezesTheSKUInTheEnd(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	restart(t, server)
	takes(t, a, "a2")
	for _, ago := range []time.Duration{50 * time.Second, 70 * time.Second} {
		run := testkit.Must[string](t)(runOf(server))
		since := run + "|" + strconv.FormatInt(time.Now().Add(-ago).UnixMilli(), 10)
		testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, "doubt", since).Err())
		_, h := takes(t, a, "a2")
		testkit.Want(
			t,
			"state after "+ago.String(),
			h.State,
			map[bool]State{true: Verifying, false: Frozen}[ago < 60*time.Second],
		)
	}
	frozen(t, a, lostSilent)
	testkit.Must[Stock](t)(connect(t, server, texts()).SetState(t.Context(), "1001", On))
	code, _ := takes(t, a, "a3")
	testkit.Want(t, "opened by hand, nobody waits for it any more", code, Held)
}

// Redis' clock was a day ahead for a moment. What it wrote then is no reason to wait for a day, nor to take an instance
// for one that is long gone.
func TestRestart_TimesOfAClockThatRanAheadAreNotBelieved(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b, dead := single(t, server), single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	takes(t, dead, "dead")
	tomorrow := strconv.FormatInt(time.Now().Add(24*time.Hour).UnixMilli(), 10)
	testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, "m:"+dead.instance, "1|"+tomorrow+"|"+
		testkit.Must[string](t)(runOf(server))).Err())
	restart(t, server)
	takes(t, a, "a2")
	run := testkit.Must[string](t)(runOf(server))
	if mark := server.Client.HGet(t.Context(), hashOf1001, "m:"+b.instance).Val(); strings.HasSuffix(mark, run) {
		t.Errorf("the mark %s of an instance that has not called says that it has", mark)
	}
	testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, "doubt", run+"|"+tomorrow).Err())
	_, h := takes(t, a, "a2")
	testkit.Want(t, "state", h.State, Verifying)
	if doubt := server.Client.HGet(t.Context(), hashOf1001, "doubt").Val(); doubt >= run+"|"+tomorrow {
		t.Errorf("it is verified until %s", doubt)
	}
}

func TestRestart_DoesNotWaitForInstancesThatEndedBefore(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	closed, dead, long := connect(t, server, texts()), connect(t, server, texts()), connect(t, server, texts())
	for i, r := range []*Store{a, closed, dead, long} {
		takes(t, r, fmt.Sprint(i))
	}
	testkit.Check(t, closed.Close())
	for _, r := range []*Store{dead, long} {
		at := strconv.FormatInt(time.Now().Add(-61*time.Second).UnixMilli(), 10)
		testkit.Check(
			t,
			server.Client.HSet(
				t.Context(),
				hashOf1001,
				"m:"+r.instance,
				fmt.Sprint("9|", at, "|", testkit.Must[string](t)(runOf(server))),
			).Err(),
		)
	}
	restart(t, server)
	code, _ := takes(t, a, "new")
	testkit.Want(t, "at once", code, Held)
	code, _ = takes(t, long, "0")
	testkit.Want(t, "one that comes back late", code, ReplayHeld)
	testkit.Want(t, "why", stockIn(t, a).Why, "")
}

// A long outage makes all marks old alike.
func TestOutage_EndsNoInstance(t *testing.T) {
	t.Parallel()
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
		testkit.Check(t, err)
		testkit.Check(
			t,
			server.Client.HSet(t.Context(), hashOf1001, field, fmt.Sprintf("%d|%d|%s", seq, at-7_200_000, run)).Err(),
		)
	}
	for range 2 {
		restart(t, server) // a second time, before the other has looked
		_, h := takes(t, a, "a2")
		testkit.Want(t, "state", h.State, Verifying)
	}
	takes(t, b, "b")
	code, _ := takes(t, a, "a2")
	testkit.Want(t, "when each has looked", code, Held)
}

func TestServers_RedisThatDoesNotTellItsRunIsWatchedByMarksAlone(t *testing.T) {
	t.Parallel()
	server, _ := durable(t)
	restricted := func() *Store {
		testkit.Check(
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
		o.Log = logTo(log)
		r := testkit.Must[*Store](t)(NewStore(o))
		t.Cleanup(func() { r.Close() })
		takes(t, r, "by "+r.instance)
		testkit.Want(t, "warnings", log.Count("does not tell its run id"), 1)
		return r
	}
	a, b := restricted(), restricted()
	kept := snapshotOf(t, server, "1001")
	takes(t, b, "lost")
	kept.restore(t, server)
	code, _ := takes(t, a, "a")
	testkit.Want(t, "by who lost nothing", code, Held)
	code, _ = takes(t, b, "b")
	testkit.Want(t, "by who lost", code, NotOnSale)
	frozen(t, b, lostMark)
}

// runOf is the server's run id.
func runOf(server *redistest.Server) (string, error) {
	info, err := server.Client.InfoMap(context.Background(), "server").Result()
	return info["Server"]["run_id"], err
}
