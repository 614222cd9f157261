package octets

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// kept is what these tables keep of a SKU.
type kept struct{ sku string }

func add(t *Table[kept], sku []byte) *kept {
	return t.Add(sku, func(v *kept, sku string, _ uint64) { v.sku = sku })
}

func name(i int) []byte { return fmt.Append(nil, "sku-", i) }

func TestTable_IsAMapWithALimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		table := NewTable[kept](limit)
		model := make(map[string]*kept)
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			sku := rapid.StringMatching(`[a-e]{0,2}`).Draw(t, "sku")
			e := table.Find([]byte(sku))
			if e != model[sku] {
				t.Fatalf("find %q: %v, want %v", sku, e, model[sku])
			}
			switch {
			case e != nil && rapid.Bool().Draw(t, "remove"):
				table.Remove(e.sku, e)
				delete(model, sku)
			case e != nil || len(model) < limit:
				model[sku] = add(table, []byte(sku))
				if model[sku] == nil || e != nil && model[sku] != e {
					t.Fatalf("add %q: %v, there was %v", sku, model[sku], e)
				}
			default:
				if add(table, []byte(sku)) != nil {
					t.Fatal("a full table took another SKU")
				}
			}
			if n := table.Len(); n != len(model) {
				t.Fatalf("length %d, want %d", n, len(model))
			}
		}
	})
}

func TestTable_FindersSeeEveryEntryThatStaysWhileOthersComeAndGo(t *testing.T) {
	table := NewTable[kept](8) // short: chains are shared
	stay := add(table, []byte("stays"))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if table.Find([]byte("stays")) != stay {
					t.Error("an entry was out of sight")
					return
				}
			}
		})
	}
	for range 2000 {
		for i := range 7 {
			add(table, name(i))
		}
		for i := range 7 {
			table.Remove(string(name(i)), table.Find(name(i)))
		}
	}
	close(done)
	wg.Wait()
}

func TestTable_WalkVisitsEachEntryOnce(t *testing.T) {
	table := NewTable[kept](1000)
	for i := range 1000 {
		add(table, name(i))
	}
	seen := make(map[string]int)
	for part := range TableParts {
		table.Walk(part, func(e *kept) {
			seen[e.sku]++
			table.Remove(e.sku, e)
		})
	}
	if len(seen) != 1000 || table.Len() != 0 {
		t.Fatalf("visited %d of 1000, %d stayed", len(seen), table.Len())
	}
}

func TestAll_HasWhatStays(t *testing.T) {
	table := NewTable[kept](10)
	a, b := add(table, []byte("a")), add(table, []byte("b"))
	table.Remove("a", a)
	table.Remove("a", a)
	again := add(table, []byte("a"))
	table.Remove("a", a) // it is out, and another has its place
	if all := table.All(); len(all) != 2 || all[0] != again && all[1] != again || all[0] != b && all[1] != b {
		t.Errorf("%v", all)
	}
}

func TestFind_AllocatesNothing(t *testing.T) {
	table, sku, other := NewTable[kept](10), []byte("1001"), []byte("other")
	add(table, sku)
	if n := testing.AllocsPerRun(1000, func() { table.Find(sku); table.Find(other) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
