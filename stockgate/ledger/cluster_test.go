package ledger

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/redistest"
	"sluice/stockgate/link"
)

// onCluster connects to a cluster.
func onCluster(t *testing.T, nodes *redistest.Nodes) *Redis {
	t.Helper()
	o := optionsFor(nodes.Masters[0], 4)
	o.Topology, o.Addresses = link.Cluster, nodes.Addrs()
	r := must[*Redis](t)(NewRedis(o))
	t.Cleanup(func() { r.Close() })
	return r
}

func TestAllKeysOfASKUAreInOneSlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sku := rapid.StringN(1, 64, 256).Filter(func(s string) bool { return checkSKU(s) == nil }).Draw(t, "sku")
		all := keys(sku)
		for _, key := range all {
			if link.Slot(key) != link.Slot(all[0]) {
				t.Fatalf("%q is in another slot than %q", key, all[0])
			}
		}
	})
}

func TestLedgersAreAllOverACluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	r := onCluster(t, nodes)
	var skus []string
	heard := make(chan string, 100)
	go r.Listen(t.Context(), func(sku string, _ Hint) { heard <- sku }, func() { heard <- "" })
	<-heard
	for i := range 30 {
		sku := strconv.Itoa(2000 + i)
		skus = append(skus, sku)
		must[Stock](t)(r.SetTotal(t.Context(), sku, 5, 1))
		codes := make([]Code, 1)
		must[Hint](t)(r.Reserve(t.Context(), sku, 0, 1, 2, []Item{{"a", "ann", 1}}, codes))
		want(t, "reserve", codes[0], Held)
		must[Stock](t)(r.SetState(t.Context(), sku, Paused))
	}
	if all := must[[]string](t)(r.SKUs(t.Context(), 100)); !slices.Equal(all, skus) {
		t.Errorf("the list is %v", all)
	}
	for _, s := range nodes.Masters {
		if s.Client.DBSize(t.Context()).Val() < 10 {
			t.Error("a master has next to nothing")
		}
	}
	check(t, r.Check(t.Context()))
	must[[]byte](t)(r.Secret(t.Context()))
	must[int64](t)(r.Mark(t.Context()))
	told := map[string]bool{}
	for len(told) < len(skus) { // of each, from whichever master; the test's own limit ends it
		if sku := <-heard; sku != "" {
			told[sku] = true
		}
	}
	check(t, nodes.Masters[1].Client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	if err := r.Check(t.Context()); err == nil {
		t.Error("a master that evicts is believed")
	}
}

// The other instance is asked about other SKUs alone: it looks by itself when it hears that slots have moved.
func TestMovedSKUIsSoldOnWhenEachLivingInstanceHasLooked(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 2)
	a, b := onCluster(t, nodes), onCluster(t, nodes)
	must[Stock](t)(a.SetTotal(t.Context(), "1001", 50, 0))
	must[Stock](t)(b.SetTotal(t.Context(), "another", 5, 0))
	want(t, "before", take(t, a, "a", ""), Held)
	want(t, "before", take(t, b, "b", ""), Held)
	slot := link.Slot(keys("1001")[0])
	nodes.Move(slot, nodes.Masters[1-slot*2/16384], nil)
	want(t, "before the other has looked", take(t, a, "a2", ""), NotOnSale)
	want(t, "a winner's retry", take(t, a, "a", ""), ReplayHeld)
	until(t, "it goes on", func() bool {
		_, _, err := b.Look(t.Context(), "another")
		check(t, err)
		return take(t, a, "a3", "") == Held
	})
	s, _, err := a.Look(t.Context(), "1001")
	check(t, err)
	want(t, "state", s.State, On)
	want(t, "why", s.Why, "")
	want(t, "held", s.Held, 3)
	want(t, "by the other", take(t, b, "b2", ""), Held)
}

func TestClusterFailOverThatLostNothingIsTrusted(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3, 0, 1, 2)
	a, b := onCluster(t, nodes), onCluster(t, nodes)
	must[Stock](t)(a.SetTotal(t.Context(), "1001", 50, 0))
	want(t, "before", take(t, a, "a", ""), Held)
	want(t, "before", take(t, b, "b", ""), Held)
	master := link.Slot(keys("1001")[0]) * 3 / 16384
	until(t, "the replica has it", func() bool {
		check(t, nodes.Masters[master].Client.Incr(t.Context(), "{1001}nonsense").Err())
		return nodes.Masters[master].Client.Wait(t.Context(), 1, time.Second).Val() == 1
	})
	nodes.Masters[master].Kill()
	nodes.Successor(master)
	codes := make([]Code, 1)
	for _, r := range []*Redis{a, b, a} {
		until(t, "an answer", func() bool {
			_, err := r.Reserve(t.Context(), "1001", 0, 1, 2, []Item{{"c", "", 1}}, codes)
			return err == nil
		})
	}
	if codes[0] != Held && codes[0] != ReplayHeld {
		t.Fatalf("%v", codes[0])
	}
	s, _, err := a.Look(t.Context(), "1001")
	check(t, err)
	want(t, "why", s.Why, "")
	want(t, "held", s.Held, 3)
}
