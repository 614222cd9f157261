package redisstore

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/redisconn"
)

// onCluster connects to a cluster.
func onCluster(t *testing.T, nodes *redistest.Nodes) *Store {
	t.Helper()
	o := optionsFor(nodes.Masters[0], 4)
	o.Topology, o.Addresses = redisconn.Cluster, nodes.Addrs()
	r := ledgertest.Must[*Store](t)(New(o))
	t.Cleanup(func() { r.Close() })
	return r
}

func TestCluster_AllKeysOfASKUAreInOneSlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sku := rapid.StringN(1, 64, 256).Filter(func(s string) bool { return protocol.CheckSKU(s) == nil }).Draw(t, "sku")
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
	go r.Listen(t.Context(), func(sku string, _ protocol.StockVersion) { heard <- sku }, func() { heard <- "" })
	<-heard
	for i := range 30 {
		sku := strconv.Itoa(2000 + i)
		skus = append(skus, sku)
		ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), sku, 5, 1))
		codes := make([]protocol.Code, 1)
		ledgertest.Must[protocol.StockVersion](
			t,
		)(
			r.Reserve(t.Context(), sku, 0, 1, 2, []protocol.Item{{Serial: "a", User: "ann", Quantity: 1}}, codes),
		)
		ledgertest.Want(t, "reserve", codes[0], protocol.Held)
		ledgertest.Must[protocol.Stock](t)(r.SetState(t.Context(), sku, protocol.Paused))
	}
	if all := ledgertest.Must[[]string](t)(r.SKUs(t.Context(), 100)); !slices.Equal(all, skus) {
		t.Errorf("the list is %v", all)
	}
	for _, s := range nodes.Masters {
		if s.Client.DBSize(t.Context()).Val() < 10 {
			t.Error("a master has next to nothing")
		}
	}
	ledgertest.Check(t, r.Check(t.Context()))
	ledgertest.Must[[]byte](t)(r.Secret(t.Context()))
	ledgertest.Must[int64](t)(r.Mark(t.Context()))
	told := map[string]bool{}
	for len(told) < len(skus) { // of each, from whichever master; the test's own limit ends it
		if sku := <-heard; sku != "" {
			told[sku] = true
		}
	}
	ledgertest.Check(t, nodes.Masters[1].Client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
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
	ledgertest.Must[protocol.Stock](t)(a.SetTotal(t.Context(), "1001", 50, 0))
	ledgertest.Must[protocol.Stock](t)(b.SetTotal(t.Context(), "another", 5, 0))
	ledgertest.Want(t, "before", ledgertest.Take(t, a, "a", ""), protocol.Held)
	ledgertest.Want(t, "before", ledgertest.Take(t, b, "b", ""), protocol.Held)
	slot := redistest.Slot(redisconn.Tag(keys("1001")[0]))
	nodes.Move(slot, nodes.Masters[1-slot*2/16384], nil)
	ledgertest.Want(t, "before the other has looked", ledgertest.Take(t, a, "a2", ""), protocol.NotOnSale)
	ledgertest.Want(t, "a winner's retry", ledgertest.Take(t, a, "a", ""), protocol.ReplayHeld)
	ledgertest.Until(t, "it goes on", func() bool {
		_, _, err := b.ReadStock(t.Context(), asked)
		ledgertest.Check(t, err)
		return ledgertest.Take(t, a, "a3", "") == protocol.Held
	})
	s, _, err := a.ReadStock(t.Context(), "1001")
	ledgertest.Check(t, err)
	ledgertest.Want(t, "state", s.State, protocol.On)
	ledgertest.Want(t, "why", s.Why, "")
	ledgertest.Want(t, "held", s.Held, 3)
	ledgertest.Want(t, "by the other", ledgertest.Take(t, b, "b2", ""), protocol.Held)
}

func TestCluster_FailOverThatLostNothingIsTrusted(t *testing.T) {
	testkit.Nightly(t, "a cluster elects a master by its own clock")
	t.Parallel()
	nodes := redistest.Cluster(t, 3, 0, 1, 2)
	a, b := onCluster(t, nodes), onCluster(t, nodes)
	ledgertest.Must[protocol.Stock](t)(a.SetTotal(t.Context(), "1001", 50, 0))
	ledgertest.Want(t, "before", ledgertest.Take(t, a, "a", ""), protocol.Held)
	ledgertest.Want(t, "before", ledgertest.Take(t, b, "b", ""), protocol.Held)
	master := redistest.Slot(redisconn.Tag(keys("1001")[0])) * 3 / 16384
	ledgertest.Until(t, "the replica has it", func() bool {
		ledgertest.Check(t, nodes.Masters[master].Client.Incr(t.Context(), "{1001}nonsense").Err())
		return nodes.Masters[master].Client.Wait(t.Context(), 1, time.Second).Val() == 1
	})
	nodes.Masters[master].Kill()
	nodes.Successor(master)
	codes := make([]protocol.Code, 1)
	for _, r := range []*Store{a, b, a} {
		ledgertest.Until(t, "an answer", func() bool {
			_, err := r.Reserve(t.Context(), "1001", 0, 1, 2, []protocol.Item{{Serial: "c", User: "", Quantity: 1}}, codes)
			return err == nil
		})
	}
	if codes[0] != protocol.Held && codes[0] != protocol.ReplayHeld {
		t.Fatalf("%v", codes[0])
	}
	s, _, err := a.ReadStock(t.Context(), "1001")
	ledgertest.Check(t, err)
	ledgertest.Want(t, "why", s.Why, "")
	ledgertest.Want(t, "held", s.Held, 3)
}
