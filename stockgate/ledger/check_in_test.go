package ledger

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// forgets takes the marks of r away from ledgers, so that a visit shows.
func forgets(t *testing.T, r *Store, skus []string, at func(sku string) *redistest.Server) {
	t.Helper()
	for _, sku := range skus {
		testkit.Check(t, at(sku).Client.HDel(t.Context(), keys(sku)[0], "m:"+r.instance).Err())
		r.Seen.Find(sku).ForgetAnswered()
	}
}

// visits waits until r has looked at each of these ledgers.
func visits(t *testing.T, r *Store, skus []string, at func(sku string) *redistest.Server) {
	t.Helper()
	for _, sku := range skus {
		testkit.Eventually(t, sku+" is visited", func() bool {
			return at(sku).Client.HExists(t.Context(), keys(sku)[0], "m:"+r.instance).Val()
		})
	}
}

// A ledger that has not answered is visited again: it may be gone, and no order or sweep may come that finds it out.
func TestVisit_IsRepeatedWhereItWasNotAnswered(t *testing.T) {
	server := redistest.Start(t)
	at := func(string) *redistest.Server { return server }
	maker, r := connect(t, server, texts()), connect(t, server, texts())
	skus := many(t, maker, MaxTogether)
	r.SweepAll(t.Context(), skus, 20, 30)
	n := countTrips(t, r)
	forgets(t, r, skus, at)
	n.fails = 1
	r.revisitAll()
	visits(t, r, skus, at)
	testkit.Want(t, "round trips", n.Load(), 2)
}

// One call that finds no connection, as may be in a rush, puts off no other ledger; but a Redis that is away is not
// asked for each of very many.
func TestVisit_GoesOnAfterACallThatFailedAndEndsWhereAllDo(t *testing.T) {
	server := redistest.Start(t)
	maker, r := connect(t, server, texts()), connect(t, server, texts())
	skus := many(t, maker, 5*MaxTogether)
	for some := range slices.Chunk(skus, MaxTogether) {
		r.SweepAll(t.Context(), some, 20, 30)
	}
	n := countTrips(t, r)
	for _, c := range []struct{ fail, trips, visited int64 }{{1, 5, 4 * MaxTogether},
		{maxFailedCalls - 1, 5, (6 - maxFailedCalls) * MaxTogether}, {5, maxFailedCalls, 0}} {
		n.Store(0)
		forgets(t, r, skus, func(string) *redistest.Server { return server })
		n.fails = c.fail
		missed := r.callEach(t.Context(), "visit", r.Seen.SKUs())
		testkit.Want(t, "round trips", n.Load(), c.trips)
		visited := int64(0)
		for _, sku := range skus {
			if server.Client.HExists(t.Context(), keys(sku)[0], "m:"+r.instance).Val() {
				visited++
			}
		}
		testkit.Want(t, "visited", visited, c.visited)
		testkit.Want(t, "missed", int64(len(missed)), int64(len(skus))-c.visited)
	}
}

// masterOf finds the master of a SKU among three that share the slots as they were shared at first.
func masterOf(nodes *redistest.Nodes) func(sku string) *redistest.Server {
	return func(sku string) *redistest.Server {
		return nodes.Masters[redistest.Slot(redisconn.Tag(keys(sku)[0]))*3/redistest.SlotCount]
	}
}

// A master that is away does not keep the ledgers of the others from being visited, whether all have been called or one
// of them has missed its turn.
func TestVisit_DeadMasterHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	at := masterOf(nodes)
	o := optionsFor(nodes.Masters[1], 4)
	o.Topology, o.Addresses, o.StateDir = redisconn.Cluster, nodes.Addrs(), t.TempDir()
	first := testkit.Must[*Store](t)(NewStore(o))
	skus := many(t, first, 300)
	for _, sku := range skus {
		hold(t, first, sku, "a", time.Now().Add(time.Hour).UnixMilli())
	}
	alive := slices.DeleteFunc(slices.Clone(skus), func(sku string) bool { return at(sku) == nodes.Masters[0] })
	first.depart() // as a process does that is killed: it leaves no mark, and its journal as it is
	first.visits.Wait()
	first.link.Close()
	testkit.Check(t, first.journal.Close(false))
	forgets(t, first, alive, at)
	nodes.Masters[0].Kill()
	r := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	testkit.Want(t, "the instance", r.instance, first.instance)
	visits(t, r, alive, at)

	forgets(t, r, alive, at)
	n := &countedTrips{after: 4, fails: 2} // of six
	testkit.Check(t, r.link.To(keys(alive[0])[0]).Do(t.Context(), func(_ context.Context, c redisconn.Commands) error {
		c.(*redis.Client).AddHook(n)
		return nil
	}, storeFault))
	r.revisitAll()
	visits(t, r, alive, at)
}

// A Redis that takes no write has not heard that an instance has left: the journal must not say that it did.
func TestLeave_IsNotDoneWhereRedisTakesNoWrites(t *testing.T) {
	t.Parallel()
	for word, spoil := range map[string]func(c redisconn.Commands) error{
		"OOM": func(c redisconn.Commands) error { return c.ConfigSet(context.Background(), "maxmemory", "1").Err() },
		"NOREPLICAS": func(c redisconn.Commands) error {
			return c.ConfigSet(context.Background(), "min-replicas-to-write", "1").Err()
		},
		"": func(redisconn.Commands) error { return nil },
	} {
		t.Run(word, func(t *testing.T) {
			server := redistest.Start(t)
			o := optionsFor(server, 4)
			o.StateDir = t.TempDir()
			r := testkit.Must[*Store](t)(NewStore(o))
			skus := many(t, r, 3)
			hold(t, r, skus[0], "a", time.Now().Add(time.Hour).UnixMilli())
			testkit.Check(t, spoil(server.Client))
			testkit.Check(t, r.Close())
			testkit.Want(t, "it has left", hasLeft(r.journal.dir), word == "")
			again := testkit.Must[*Store](t)(NewStore(o))
			testkit.Want(t, "it has the name of before", again.instance, r.instance)
			testkit.Check(t, again.Close())
		})
	}
}

// An instance that stops has not heard that another one froze the SKU, since a tail was lost. It tells what it knows
// before it leaves.
func TestLeave_TellsALedgerThatFrozeMeanwhile(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r, other := connect(t, server, texts()), connect(t, server, texts())
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 5, 0))
	before := snapshotOf(t, server, "1001")
	testkit.Want(t, "reserve", takeUnit(t, r, "a", "ann"), Held)
	testkit.Must[[]Record](t)(other.Sweep(t.Context(), "1001", 1, 2, 1))
	before.restore(t, server)
	testkit.Must[[]Record](t)(other.Sweep(t.Context(), "1001", 1, 2, 1))
	frozen(t, other, lostVersion)
	testkit.Check(t, r.Close())
	testkit.Want(t, "the order is back", server.Client.HExists(t.Context(), keys("1001")[1], "a").Val(), true)
	testkit.Want(t, "its mark is left", server.Client.HExists(t.Context(), hashOf1001, "m:"+r.instance).Val(), false)
}

// An instance that stops has something to tell, and has not heard that the epoch has risen once more. It tells that
// epoch, too, before it takes its mark away: without the mark it would find that its own calls are lost.
func TestLeave_TellsTheEpochThatItHearsLast(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r, other := connect(t, server, texts()), connect(t, server, texts())
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 5, 0))
	testkit.Want(t, "reserve", takeUnit(t, r, "a", "ann"), Held)
	testkit.Must[Stock](t)(other.SetState(t.Context(), "1001", Frozen))
	testkit.Must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
	testkit.Want(t, "SKUs that wait for what it knows", len(r.Pending()), 1)
	testkit.Must[Stock](t)(other.SetState(t.Context(), "1001", On))
	before := testkit.Must[Stock](t)(other.SetState(t.Context(), "1001", Frozen))
	testkit.Check(t, r.Close())
	after, _, err := other.ReadStock(t.Context(), "1001")
	testkit.Check(t, err)
	testkit.Want(t, "the epoch", after.Epoch, before.Epoch)
	testkit.Want(t, "why it is frozen", after.Why, before.Why)
	testkit.Want(t, "its mark is left", server.Client.HExists(t.Context(), hashOf1001, "m:"+r.instance).Val(), false)
}
