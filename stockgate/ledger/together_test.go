package ledger

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// countedTrips counts round trips of one client, but not those of connections that are opened meanwhile: the pool does
// so in its own time, and a client's hooks see how each is greeted, too.
type countedTrips struct {
	atomic.Int64
	between func() // before each of them; nil = nothing
	after   int64  // so many pipelines
	fails   int64  // ... so many find no connection
}

func (*countedTrips) DialHook(next redis.DialHook) redis.DialHook { return next }

// greets reports whether a connection begins with such a command.
func greets(cmd redis.Cmder) bool {
	return slices.Contains([]string{"hello", "client", "info", "script"}, cmd.Name())
}

// begin counts a round trip.
func (n *countedTrips) begin() {
	if n.Add(1); n.between != nil {
		n.between()
	}
}

func (n *countedTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !greets(cmd) {
			n.begin()
		}
		return next(ctx, cmd)
	}
}

func (n *countedTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if greets(cmds[0]) {
			return next(ctx, cmds)
		}
		n.begin()
		if i := n.Load() - n.after; 0 < i && i <= n.fails {
			for _, cmd := range cmds {
				cmd.SetErr(redis.ErrPoolTimeout)
			}
			return redis.ErrPoolTimeout
		}
		return next(ctx, cmds)
	}
}

// countTrips counts the round trips of r to the one server from now on.
func countTrips(t testing.TB, r *Store) *countedTrips {
	t.Helper()
	n := &countedTrips{}
	testkit.Check(t, r.link.Do(context.Background(), func(_ context.Context, c redisconn.Commands) error {
		c.(*redis.Client).AddHook(n)
		return nil
	}, storeFault))
	return n
}

// many makes n ledgers of five units.
func many(t testing.TB, r *Store, n int) (skus []string) {
	t.Helper()
	for i := range n {
		skus = append(skus, strconv.Itoa(2000+i))
		testkit.Must[Stock](t)(r.SetTotal(context.Background(), skus[i], 5, 0))
	}
	return skus
}

// hold takes a unit of a SKU until a time, in Unix ms.
func hold(t testing.TB, r *Store, sku, serial string, deadline int64) {
	t.Helper()
	codes := make([]Code, 1)
	testkit.Must[StockVersion](t)(
		r.Reserve(
			context.Background(),
			sku,
			0,
			1,
			deadline,
			[]Item{{Serial: serial, User: "", Quantity: 1}},
			codes,
		),
	)
	testkit.Want(t, "reserve", codes[0], Held)
}

func TestRedisstore_ManyLedgersAreLookedAfterInFewRoundTrips(t *testing.T) {
	server := redistest.Start(t)
	maker, r := connect(t, server, texts()), connect(t, server, texts())
	skus := many(t, maker, 300)
	n := countTrips(t, r)
	for some := range slices.Chunk(skus, MaxTogether) {
		r.SweepAll(t.Context(), some, 1, 2)
	}
	testkit.Want(t, "round trips of the sweeps", n.Load(), 5)
	for _, sku := range skus {
		if !server.Client.HExists(t.Context(), keys(sku)[0], "m:"+r.instance).Val() {
			t.Fatalf("%s was not swept", sku)
		}
	}
	n.Store(0)
	r.InspectAll(t.Context(), skus[:MaxTogether])
	testkit.Want(t, "round trips of the numbers of as many as may be", n.Load(), 1)
	n.Store(0)
	r.callEach(t.Context(), "visit", r.Seen.SKUs())
	testkit.Want(t, "round trips of a visit", n.Load(), 5)
}

func TestRedisstore_LedgerThatFailsHarmsNoOther(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := connect(t, server, texts())
	skus := many(t, r, 4)
	for _, sku := range skus {
		hold(t, r, sku, "a", 10)
	}
	testkit.Check(t, server.Client.HSet(t.Context(), keys(skus[1])[0], "state", "open").Err())
	skus = append(skus, "{", "nobody's")
	swept := r.SweepAll(t.Context(), skus, 20, 30)
	for i, fails := range []bool{false, true, false, false, true, false} {
		testkit.Want(t, skus[i]+" fails", swept[i].Err != nil, fails)
		testkit.Want(t, skus[i]+"'s holds", len(swept[i].Holds) == 1, !fails && i < 4)
		testkit.Want(t, skus[i]+" has more", swept[i].More, false)
	}
	found := r.InspectAll(t.Context(), skus)
	for i, state := range []string{"on", "open", "on", "on", "", ""} {
		testkit.Want(t, "state", found[i].State, state)
		testkit.Want(t, skus[i]+" fails", found[i].Err != nil, skus[i] == "{")
	}
}

func TestRedisstore_SweepOfManyIsThatOfEach(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		takeUnit(t, s, "a", "ann")
		testkit.Want(t, "release", finishOne(t, s, Release, "gone"), Changed)
		swept := s.SweepAll(t.Context(), []string{"1001", "none"}, 999, 5_000)
		testkit.Want(t, "too early", len(swept[0].Holds), 0)
		swept = s.SweepAll(t.Context(), []string{"none", "1001"}, 2_000, 5_000)
		if len(swept[1].Holds) != 1 || swept[1].Holds[0].Serial != "a" || swept[1].Err != nil {
			t.Fatalf("%+v", swept)
		}
		testkit.Want(t, "leased", len(s.SweepAll(t.Context(), []string{"1001"}, 4_999, 9_000)[0].Holds), 0)
		testkit.Want(t, "the tombstone is forgotten", takeUnit(t, s, "gone", "zoe"), Held)
		testkit.Want(t, "no ledger", swept[0].Err, nil)
	})
}

func TestRedisstore_FlushedScriptsCostNoLedgerItsSweep(t *testing.T) {
	server := redistest.Start(t)
	r := connect(t, server, texts())
	skus := many(t, r, 10)
	n := countTrips(t, r)
	testkit.Check(t, server.Client.ScriptFlush(t.Context()).Err())
	for i, s := range r.SweepAll(t.Context(), skus, 20, 30) {
		testkit.Want(t, skus[i], s.Err, nil)
	}
	testkit.Want(t, "round trips", n.Load(), 2)
	n.Store(0)
	n.between = func() { _ = server.Client.ScriptFlush(context.Background()).Err() }
	for i, s := range r.SweepAll(t.Context(), skus, 20, 30) {
		testkit.Want(t, skus[i], s.Err, nil)
	}
	testkit.Want(t, "round trips", n.Load(), 2)
}

func TestRedisstore_ReplyOfAnotherCallClosesItsLedgerAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	maker := connect(t, server, texts())
	skus := many(t, maker, 3)
	broken := texts()
	broken["sweep"] = "if string.find(KEYS[1], '2001', 1, true) then SEQ = '0' end\n" + broken["sweep"]
	r := connect(t, server, broken)
	for i, s := range r.SweepAll(t.Context(), skus, 20, 30) {
		testkit.Want(t, skus[i]+" is mixed up", errors.Is(s.Err, redisconn.ErrReplyMismatch), i == 1)
	}
	for i, sku := range skus {
		hint, err := r.Reserve(
			t.Context(),
			sku,
			0,
			1,
			2,
			[]Item{{Serial: "a", User: "", Quantity: 1}},
			make([]Code, 1),
		)
		testkit.Check(t, err)
		testkit.Want(t, sku+" is frozen", hint.State == Frozen, i == 1)
	}
}

func TestRedisstore_UnansweredSweepIsNotPutAgain(t *testing.T) {
	server := redistest.Start(t)
	o := optionsFor(server, 4)
	o.Timeout = 500 * time.Millisecond
	r := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	skus := many(t, connect(t, server, texts()), 5)
	testkit.Eventually(t, "all are swept", func() bool { // the machine may be busy
		return !slices.ContainsFunc(
			r.SweepAll(t.Context(), skus, 20, 30),
			func(s Swept) bool { return s.Err != nil },
		)
	})
	n := countTrips(t, r)
	server.Pause()
	swept := r.SweepAll(t.Context(), skus, 20, 30)
	server.Resume()
	for i, s := range swept {
		testkit.Want(t, skus[i]+" fails", s.Err != nil, true)
	}
	testkit.Want(t, "round trips", n.Load(), 1)
}

func TestRedisstore_SweepsOfAClusterGoToEachMasterAndFollowTheirSlots(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	r := onCluster(t, nodes)
	skus := many(t, r, 40)
	for _, sku := range skus {
		hold(t, r, sku, "a", 10)
	}
	slot := redistest.Slot(redisconn.Tag(keys(skus[0])[0]))
	owner := nodes.Owner(slot)
	to := nodes.Masters[(slices.Index(nodes.Masters, owner)+1)%3]
	nodes.Move(slot, to, nil) // r does not know
	due := r.SweepAll(t.Context(), skus, 20, 30)
	for i, s := range due {
		testkit.Want(t, skus[i], s.Err, nil)
		testkit.Want(t, skus[i]+"'s holds", len(s.Holds), 1)
	}
	for i, s := range r.SweepAll(t.Context(), skus, 20, 30) {
		testkit.Want(t, skus[i]+"'s holds, leased", len(s.Holds), 0)
	}
	to.Kill()
	failed := 0
	for i, s := range r.SweepAll(t.Context(), skus, 40, 50) {
		if s.Err != nil {
			failed++
			continue
		}
		testkit.Want(t, skus[i]+"'s holds", len(s.Holds), 1)
	}
	if failed == 0 || failed > 30 {
		t.Errorf("%d of 40 failed with one of three masters away", failed)
	}
}
