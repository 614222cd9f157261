package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/stockgate/link"
)

// trips counts round trips of one client, but not those of connections that are opened meanwhile: the pool does so in its
// own time, and a client's hooks see how each is greeted, too.
type trips struct {
	atomic.Int64
	between func() // before each of them; nil = nothing
	fails   int64  // so many pipelines find no connection
}

func (*trips) DialHook(next redis.DialHook) redis.DialHook { return next }

// greets reports whether a connection begins with such a command.
func greets(cmd redis.Cmder) bool {
	return slices.Contains([]string{"hello", "client", "info", "script"}, cmd.Name())
}

func (n *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !greets(cmd) {
			n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (n *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if greets(cmds[0]) {
			return next(ctx, cmds)
		}
		if n.Add(1); n.between != nil {
			n.between()
		}
		if n.Load() <= n.fails {
			for _, cmd := range cmds {
				cmd.SetErr(redis.ErrPoolTimeout)
			}
			return redis.ErrPoolTimeout
		}
		return next(ctx, cmds)
	}
}

// countTrips counts the round trips of r to the one server from now on.
func countTrips(t testing.TB, r *Redis) *trips {
	t.Helper()
	n := &trips{}
	check(t, r.link.Do(context.Background(), func(_ context.Context, c *redis.Client) error { c.AddHook(n); return nil }, fault))
	return n
}

// many makes n ledgers of five units.
func many(t testing.TB, r *Redis, n int) (skus []string) {
	t.Helper()
	for i := range n {
		skus = append(skus, strconv.Itoa(2000+i))
		must[Stock](t)(r.SetTotal(context.Background(), skus[i], 5, 0))
	}
	return skus
}

// hold takes a unit of a SKU until a time, in Unix ms.
func hold(t testing.TB, r *Redis, sku, serial string, deadline int64) {
	t.Helper()
	codes := make([]Code, 1)
	must[Hint](t)(r.Reserve(context.Background(), sku, 0, 1, deadline, []Item{{serial, "", 1}}, codes))
	want(t, "reserve", codes[0], Held)
}

// idle returns a desk that does by itself nothing, and whose turns the test takes.
func idle(t testing.TB, r Store, skus []string) (*Desk, *rota) {
	t.Helper()
	d := opened(t, deskOptions(), r, nil)
	d.rest()
	d.watch.Wait()
	for _, sku := range skus {
		d.Watch(sku)
	}
	return d, &rota{}
}

func TestManyLedgersAreLookedAfterInFewRoundTrips(t *testing.T) {
	server := redistest.Start(t)
	maker, r := connect(t, server, texts()), connect(t, server, texts())
	skus := many(t, maker, 300)
	d, turns := idle(t, r, skus)
	n := countTrips(t, r)
	for turn := range 3 {
		n.Store(0)
		d.sweepSome(t.Context(), turns)
		want(t, fmt.Sprint("round trips of the sweeps of turn ", turn), n.Load(), 2) // 100 ledgers
	}
	for _, sku := range skus {
		if !server.Client.HExists(t.Context(), keys(sku)[0], "m:"+r.instance).Val() {
			t.Fatalf("%s was not swept", sku)
		}
	}
	n.Store(0)
	newAuditor(d, r).turn(t.Context())
	want(t, "round trips of the audits", n.Load(), 23) // 20 as a whole, the numbers of 180
	n.Store(0)
	r.eachTrace(t.Context(), "visit")
	want(t, "round trips of a visit", n.Load(), 5)
}

func TestLedgerThatFailsHarmsNoOther(t *testing.T) {
	server := redistest.Start(t)
	r := connect(t, server, texts())
	skus := many(t, r, 4)
	for _, sku := range skus {
		hold(t, r, sku, "a", 10)
	}
	check(t, server.Client.HSet(t.Context(), keys(skus[1])[0], "state", "open").Err())
	skus = append(skus, "{", "nobody's")
	swept := r.SweepAll(t.Context(), skus, 20, 30)
	for i, fails := range []bool{false, true, false, false, true, false} {
		want(t, skus[i]+" fails", swept[i].Err != nil, fails)
		want(t, skus[i]+"'s holds", len(swept[i].Holds) == 1, !fails && i < 4)
		want(t, skus[i]+" has more", swept[i].More, false)
	}
	found := r.inspectAll(t.Context(), skus)
	for i, state := range []string{"on", "open", "on", "on", "", ""} {
		want(t, "state", found[i].state, state)
		want(t, skus[i]+" fails", found[i].err != nil, skus[i] == "{")
	}
}

func TestSweepOfManyIsThatOfEach(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		take(t, s, "a", "ann")
		want(t, "release", do(t, s, Release, "gone"), Changed)
		swept := s.SweepAll(t.Context(), []string{"1001", "none"}, 999, 5_000)
		want(t, "too early", len(swept[0].Holds), 0)
		swept = s.SweepAll(t.Context(), []string{"none", "1001"}, 2_000, 5_000)
		if len(swept[1].Holds) != 1 || swept[1].Holds[0].Serial != "a" || swept[1].Err != nil {
			t.Fatalf("%+v", swept)
		}
		want(t, "leased", len(s.SweepAll(t.Context(), []string{"1001"}, 4_999, 9_000)[0].Holds), 0)
		want(t, "the tombstone is forgotten", take(t, s, "gone", "zoe"), Held)
		want(t, "no ledger", swept[0].Err, nil)
	})
}

func TestWhatIsDueBeyondAFewIsSweptInTheSameTurn(t *testing.T) {
	_, r := onRedis(t)
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
	for i := range 200 {
		hold(t, r, "1001", fmt.Sprint("late ", i), 10)
	}
	want(t, "more", r.SweepAll(t.Context(), []string{"1001"}, 5, 6)[0].More, false)
	d, turns := idle(t, r, []string{"1001"})
	d.sweepSome(t.Context(), turns)
	l := d.lines.find([]byte("1001"))
	want(t, "doubts", len(l.doubts), 201) // "a" too, which is overdue as well
	want(t, "more", r.SweepAll(t.Context(), []string{"1001"}, 20, 30)[0].More, false)
}

func TestFlushedScriptsCostNoLedgerItsSweep(t *testing.T) {
	server := redistest.Start(t)
	r := connect(t, server, texts())
	skus := many(t, r, 10)
	n := countTrips(t, r)
	check(t, server.Client.ScriptFlush(t.Context()).Err())
	for i, s := range r.SweepAll(t.Context(), skus, 20, 30) {
		want(t, skus[i], s.Err, nil)
	}
	want(t, "round trips", n.Load(), 2)
	n.Store(0)
	n.between = func() { _ = server.Client.ScriptFlush(context.Background()).Err() }
	for i, s := range r.SweepAll(t.Context(), skus, 20, 30) {
		want(t, skus[i], s.Err, nil)
	}
	want(t, "round trips", n.Load(), 2)
}

func TestReplyOfAnotherCallClosesItsLedgerAlone(t *testing.T) {
	server := redistest.Start(t)
	maker := connect(t, server, texts())
	skus := many(t, maker, 3)
	broken := texts()
	broken["sweep"] = "if string.find(KEYS[1], '2001', 1, true) then SEQ = '0' end\n" + broken["sweep"]
	r := connect(t, server, broken)
	for i, s := range r.SweepAll(t.Context(), skus, 20, 30) {
		want(t, skus[i]+" is mixed up", errors.Is(s.Err, link.ErrMixedUp), i == 1)
	}
	for i, sku := range skus {
		hint, err := r.Reserve(t.Context(), sku, 0, 1, 2, []Item{{"a", "", 1}}, make([]Code, 1))
		check(t, err)
		want(t, sku+" is frozen", hint.State == Frozen, i == 1)
	}
}

func TestUnansweredSweepIsNotPutAgain(t *testing.T) {
	server := redistest.Start(t)
	o := optionsFor(server, 4)
	o.Timeout = 500 * time.Millisecond
	r := must[*Redis](t)(NewRedis(o))
	t.Cleanup(func() { r.Close() })
	skus := many(t, connect(t, server, texts()), 5)
	until(t, "all are swept", func() bool { // the machine may be busy
		return !slices.ContainsFunc(r.SweepAll(t.Context(), skus, 20, 30), func(s Swept) bool { return s.Err != nil })
	})
	n := countTrips(t, r)
	server.Pause()
	swept := r.SweepAll(t.Context(), skus, 20, 30)
	server.Resume()
	for i, s := range swept {
		want(t, skus[i]+" fails", s.Err != nil, true)
	}
	want(t, "round trips", n.Load(), 1)
}

// One call that finds no connection, as may be in a rush, puts off no other ledger; but a Redis that is away is not asked
// for each of very many.
func TestVisitGoesOnAfterACallThatFailedAndEndsWhereAllDo(t *testing.T) {
	server := redistest.Start(t)
	maker, r := connect(t, server, texts()), connect(t, server, texts())
	skus := many(t, maker, 5*together)
	for i := range 5 {
		r.SweepAll(t.Context(), skus[i*together:(i+1)*together], 20, 30)
	}
	n := countTrips(t, r)
	for _, c := range []struct{ fail, trips, visited int64 }{{1, 5, 4 * together}, {hopeless - 1, 5, (6 - hopeless) * together}, {5, hopeless, 0}} {
		n.Store(0)
		for _, sku := range skus {
			check(t, server.Client.HDel(t.Context(), keys(sku)[0], "m:"+r.instance).Err())
			r.traces.find(sku).answered = 0
		}
		n.fails = c.fail
		r.eachTrace(t.Context(), "visit")
		want(t, "round trips", n.Load(), c.trips)
		visited := int64(0)
		for _, sku := range skus {
			if server.Client.HExists(t.Context(), keys(sku)[0], "m:"+r.instance).Val() {
				visited++
			}
		}
		want(t, "visited", visited, c.visited)
	}
}

func TestSweepsOfAClusterGoToEachMasterAndFollowTheirSlots(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	r := onCluster(t, nodes)
	skus := many(t, r, 40)
	for _, sku := range skus {
		hold(t, r, sku, "a", 10)
	}
	slot := link.Slot(keys(skus[0])[0])
	owner := nodes.Owner(slot)
	to := nodes.Masters[(slices.Index(nodes.Masters, owner)+1)%3]
	nodes.Move(slot, to, nil) // r does not know
	due := r.SweepAll(t.Context(), skus, 20, 30)
	for i, s := range due {
		want(t, skus[i], s.Err, nil)
		want(t, skus[i]+"'s holds", len(s.Holds), 1)
	}
	for i, s := range r.SweepAll(t.Context(), skus, 20, 30) {
		want(t, skus[i]+"'s holds, leased", len(s.Holds), 0)
	}
	to.Kill()
	failed := 0
	for i, s := range r.SweepAll(t.Context(), skus, 40, 50) {
		if s.Err != nil {
			failed++
			continue
		}
		want(t, skus[i]+"'s holds", len(s.Holds), 1)
	}
	if failed == 0 || failed > 30 {
		t.Errorf("%d of 40 failed with one of three masters away", failed)
	}
}

func TestEveryLedgerHasItsTurnWhicheverOthersVanish(t *testing.T) {
	d, turns := idle(t, NewMemory(), nil)
	var all []*line
	for i := range 4_000 {
		sku := strconv.Itoa(i)
		d.Watch(sku)
		all = append(all, d.lines.find([]byte(sku)))
	}
	turns.join(d.lines.newcomers(), d.useless)
	seen := make(map[*line]int)
	for turn := range sweepTurns {
		for _, l := range turns.next() {
			seen[l]++
		}
		for _, l := range all[turn*100 : turn*100+50] { // have no ledger any more
			l.watched.Store(false)
		}
	}
	for i, l := range all {
		if l.watched.Load() && seen[l] == 0 || seen[l] > 1 {
			t.Fatalf("line %d had %d turns", i, seen[l])
		}
	}
	want(t, "all", len(turns.ledgers)+len(turns.strangers), len(all))
}

func TestRoundYieldsEveryLineOnceFromAnyPlace(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 257, 600} {
		lines := newLines(1000)
		for i := range n {
			lines.add([]byte(strconv.Itoa(i)), func(sku string, hash uint64) *line { return &line{sku: sku, hash: hash} })
		}
		for _, from := range []int{0, 1, n / 2, n, n + 7} {
			seen := make(map[*line]bool)
			for place, l := range lines.round(from) {
				if l.place != place || seen[l] {
					t.Fatalf("%d from %d: %s at %d", n, from, l.sku, place)
				}
				seen[l] = true
			}
			want(t, fmt.Sprint(n, " from ", from), len(seen), n)
		}
	}
}

// While lines come and go nobody waits, and nothing breaks.
func TestRoundBesideAddingAndRemoving(t *testing.T) {
	lines := newLines(2000)
	var others sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	others.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			l := lines.add([]byte(strconv.Itoa(i%1500)), func(sku string, hash uint64) *line { return &line{sku: sku, hash: hash} })
			if i%3 == 0 {
				lines.remove(l)
			}
		}
	})
	for from := range 300 {
		for _, l := range lines.round(from) {
			if l == nil {
				t.Fatal("no line")
			}
		}
	}
	cancel()
	others.Wait()
}
