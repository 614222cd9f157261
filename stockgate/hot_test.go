package stockgate

import (
	"testing"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

// hot returns a gate that knows each verdict, and the SKUs by what Closed says of them.
func hot(t testing.TB, o Options) (*Gate, map[reject.Reason][]byte) {
	t.Helper()
	o, err := o.checked()
	testkit.Check(t, err)
	g := newGate(o, NewMemory())
	skus := map[reject.Reason][]byte{
		reject.Admitted: []byte("open"), reject.SoldOut: []byte("sold-out"),
		reject.Paused: []byte("paused"), reject.UnknownSKU: []byte("unknown"),
	}
	for v, reason := range g.rules.Load().closed {
		if sku, ok := skus[reason]; ok && verdict(v) != unread && verdict(v) != faulty {
			addEntry(g.table, 0, sku).publish(verdict(v), 1<<40, 0)
		}
	}
	return g, skus
}

func TestHot_DecisionsAllocateNothing(t *testing.T) {
	o := options()
	o.PerUnit = 1
	g, skus := hot(t, o)
	for want, sku := range skus {
		n := testing.AllocsPerRun(1000, func() {
			if g.Closed(1, sku) != want || g.Enter(1, sku, nil) != want {
				t.Fatalf("%s is not %v", sku, want)
			}
			if want == reject.Admitted {
				g.Leave(sku)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", sku, n)
		}
	}
	if n := testing.AllocsPerRun(1000, func() { g.Closed(1, []byte("never seen")) }); n != 0 {
		t.Errorf("never seen: %v allocations", n)
	}
}

func TestHot_RejectionsWithinATenthOfASecondWriteNothing(t *testing.T) {
	o := options()
	o.PerUnit = 1
	g, skus := hot(t, o)
	for _, sku := range skus {
		e := g.table.Find(sku)
		e.left.Store(noTry) // the SKU on sale rejects, too
		before := [4]int64{e.packed.Load(), e.left.Load(), e.asked.Load(), e.inFlight.Load()}
		for now := range askedEvery / 1_000_000 {
			g.Closed(now*1_000_000, sku)
			if got := g.Enter(now*1_000_000, sku, nil); got == reject.Admitted {
				t.Fatalf("%s was admitted", sku)
			}
		}
		if after := [4]int64{e.packed.Load(), e.left.Load(), e.asked.Load(), e.inFlight.Load()}; after != before {
			t.Errorf("%s: %v became %v", sku, before, after)
		}
	}
}

func BenchmarkClosed(b *testing.B) {
	g, skus := hot(b, options())
	for reason, name := range map[reject.Reason]string{reject.SoldOut: "sold-out", reject.Admitted: "open"} {
		b.Run(name, func(b *testing.B) {
			sku := skus[reason]
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					g.Closed(1, sku)
				}
			})
		})
	}
}

func BenchmarkEnter(b *testing.B) {
	for name, perUnit := range map[string]int{"uncapped": 0, "per-unit": 1} {
		b.Run(name, func(b *testing.B) {
			o := options()
			o.PerUnit = perUnit
			g, skus := hot(b, o)
			sku := skus[reject.Admitted]
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					g.Enter(1, sku, nil)
					g.Leave(sku)
				}
			})
		})
	}
}

// A crowd asks for as many SKUs as the table holds: no entry is in a cache.
func BenchmarkClosedOfAFullTable(b *testing.B) {
	g, _ := hot(b, options())
	skus := make([][]byte, 90_000)
	for i := range skus {
		skus[i] = name(i)
		addEntry(g.table, 0, skus[i]).publish(soldOut, 0, 0)
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			g.Closed(1, skus[i*7919%len(skus)])
		}
	})
}
