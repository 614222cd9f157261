package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSKUCounts_NamedSKUsAreCountedAloneAndOthersTogether(t *testing.T) {
	c := NewCounters(2)
	c.NameSKUs("1002", "1001")
	for range 3 {
		c.Shard().CountSKU([]byte("1001"), false, 0)
	}
	c.Shard().CountSKU([]byte("1001"), true, 0)
	c.Shard().CountSKU([]byte("invented"), false, 0)
	want := []SKUCount{{"1001", 1, 3}, {"1002", 0, 0}, {"", 0, 1}}
	if diff := cmp.Diff(want, c.SKUCounts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	c.NameSKUs("1001", "1003") // a name that is there keeps its counts
	c.Shard().CountSKU([]byte("1003"), true, 0)
	want = []SKUCount{{"1001", 1, 3}, {"1002", 0, 0}, {"1003", 1, 0}, {"", 0, 1}}
	if diff := cmp.Diff(want, c.SKUCounts()); diff != "" {
		t.Errorf("counts after a name was added (-want +got):\n%s", diff)
	}
}

func TestHotSKUs_AreThoseThatMostRequestsAskFor(t *testing.T) {
	c := NewCounters(2)
	for i := range 5000 { // one request in two is for 1001, the others are for SKUs that come once
		c.Shard().CountSKU([]byte("1001"), i%7 == 0, 0)
		c.Shard().CountSKU(fmt.Appendf(nil, "x%d", i), false, 0)
	}
	if hot := c.HotSKUs(1, 0); len(hot) != 1 || hot[0] != (HotSKU{"1001", 5000}) {
		t.Errorf("hot: %v", hot)
	}
	if hot := c.HotSKUs(1, int64(2*time.Minute)); len(hot) != 1 || hot[0].Requests != 1250 {
		t.Errorf("two minutes later: %v", hot)
	}
}

func TestCountSKU_AllocatesNothing(t *testing.T) {
	c := NewCounters(1)
	c.NameSKUs("1001")
	s, skus := c.Shard(), [][]byte{[]byte("1001"), []byte("1002")}
	if n := testing.AllocsPerRun(100, func() {
		for _, sku := range skus {
			s.CountSKU(sku, false, 0)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCountSKU(b *testing.B) {
	c := NewCounters(4)
	c.NameSKUs("1001")
	s, sku := c.Shard(), []byte("1001")
	for b.Loop() {
		s.CountSKU(sku, false, 0)
	}
}
