package ledger

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// onCluster connects to a cluster.
func onCluster(t *testing.T, nodes *redistest.Nodes) *Store {
	t.Helper()
	o := optionsFor(nodes.Masters[0], 4)
	o.Topology, o.Addresses = redisconn.Cluster, nodes.Addrs()
	r := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	return r
}

func TestCluster_AllKeysOfASKUAreInOneSlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sku := rapid.StringN(1, 64, 256).Filter(func(s string) bool { return CheckSKU(s) == nil }).Draw(t, "sku")
		all := keys(sku)
		for _, key := range all {
			if redistest.Slot(redisconn.Tag(key)) != redistest.Slot(redisconn.Tag(all[0])) {
				t.Fatalf("%q is in another slot than %q", key, all[0])
			}
		}
	})
}

func TestCluster_LedgersAreAllOverACluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	r := onCluster(t, nodes)
	var skus []string
	heard := make(chan string, 100)
	go r.Listen(t.Context(), func(sku string, _ StockVersion) { heard <- sku }, func() { heard <- "" })
	<-heard
	for i := range 30 {
		sku := strconv.Itoa(2000 + i)
		skus = append(skus, sku)
		testkit.Must[Stock](t)(r.SetTotal(t.Context(), sku, 5, 1))
		codes := make([]Code, 1)
		testkit.Must[StockVersion](t)(
			r.Reserve(t.Context(), sku, 0, 1, 2, []Item{{Serial: "a", User: "ann", Quantity: 1}}, codes),
		)
		testkit.Want(t, "reserve", codes[0], Held)
		testkit.Must[Stock](t)(r.SetState(t.Context(), sku, Paused))
	}
	if all := testkit.Must[[]string](t)(r.SKUs(t.Context(), 100)); !slices.Equal(all, skus) {
		t.Errorf("the list is %v", all)
	}
	for _, s := range nodes.Masters {
		if s.Client.DBSize(t.Context()).Val() < 10 {
			t.Error("a master has next to nothing")
		}
	}
	testkit.Check(t, r.Check(t.Context()))
	testkit.Must[[]byte](t)(r.Secret(t.Context()))
	testkit.Must[int64](t)(r.Mark(t.Context()))
	told := map[string]bool{}
	for len(told) < len(skus) { // of each, from whichever master; the test's own limit ends it
		if sku := <-heard; sku != "" {
			told[sku] = true
		}
	}
	testkit.Check(t, nodes.Masters[1].Client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	if err := r.Check(t.Context()); err == nil {
		t.Error("a master that evicts is believed")
	}
}

func TestCluster_MovedSKUIsSoldOnWhenEachLivingInstanceHasLooked(t *testing.T) {
	t.Parallel()
	soldOn(t, "1001")
}

// The other instance is asked about other SKUs alone: it looks by itself when it hears that slots have moved.
func TestCluster_MovedSKUIsSoldOnWithoutARequestForIt(t *testing.T) {
	testkit.Nightly(t, "instances read the slots every 10 s")
	t.Parallel()
	soldOn(t, "another")
}

// soldOn moves a SKU of two instances, of which the second is asked about asked alone.
func soldOn(t *testing.T, asked string) {
	t.Helper()
	nodes := redistest.Cluster(t, 2)
	a, b := onCluster(t, nodes), onCluster(t, nodes)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 50, 0))
	testkit.Must[Stock](t)(b.SetTotal(t.Context(), "another", 5, 0))
	testkit.Want(t, "before", takeUnit(t, a, "a", ""), Held)
	testkit.Want(t, "before", takeUnit(t, b, "b", ""), Held)
	slot := redistest.Slot(redisconn.Tag(keys("1001")[0]))
	nodes.Move(slot, nodes.Masters[1-slot*2/16384], nil)
	testkit.Want(t, "before the other has looked", takeUnit(t, a, "a2", ""), NotOnSale)
	testkit.Want(t, "a winner's retry", takeUnit(t, a, "a", ""), ReplayHeld)
	testkit.Eventually(t, "it goes on", func() bool {
		_, _, err := b.ReadStock(t.Context(), asked)
		testkit.Check(t, err)
		return takeUnit(t, a, "a3", "") == Held
	})
	s, _, err := a.ReadStock(t.Context(), "1001")
	testkit.Check(t, err)
	testkit.Want(t, "state", s.State, On)
	testkit.Want(t, "why", s.Why, "")
	testkit.Want(t, "held", s.Held, 3)
	testkit.Want(t, "by the other", takeUnit(t, b, "b2", ""), Held)
}

func TestCluster_FailOverThatLostNothingIsTrusted(t *testing.T) {
	testkit.Nightly(t, "a cluster elects a master by its own clock")
	t.Parallel()
	nodes := redistest.Cluster(t, 3, 0, 1, 2)
	a, b := onCluster(t, nodes), onCluster(t, nodes)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 50, 0))
	testkit.Want(t, "before", takeUnit(t, a, "a", ""), Held)
	testkit.Want(t, "before", takeUnit(t, b, "b", ""), Held)
	master := redistest.Slot(redisconn.Tag(keys("1001")[0])) * 3 / 16384
	testkit.Eventually(t, "the replica has it", func() bool {
		testkit.Check(t, nodes.Masters[master].Client.Incr(t.Context(), "{1001}nonsense").Err())
		return nodes.Masters[master].Client.Wait(t.Context(), 1, time.Second).Val() == 1
	})
	nodes.Masters[master].Kill()
	nodes.Successor(master)
	codes := make([]Code, 1)
	for _, r := range []*Store{a, b, a} {
		testkit.Eventually(t, "an answer", func() bool {
			_, err := r.Reserve(t.Context(), "1001", 0, 1, 2, []Item{{Serial: "c", User: "", Quantity: 1}}, codes)
			return err == nil
		})
	}
	if codes[0] != Held && codes[0] != ReplayHeld {
		t.Fatalf("%v", codes[0])
	}
	s, _, err := a.ReadStock(t.Context(), "1001")
	testkit.Check(t, err)
	testkit.Want(t, "why", s.Why, "")
	testkit.Want(t, "held", s.Held, 3)
}
