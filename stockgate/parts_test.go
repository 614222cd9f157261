package stockgate

import (
	"errors"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/layout"
)

// A client may name a SKU with an empty part, or with too few: where keys name the parts it has no key, and asking for
// it would reach into another slot, or into another SKU's key.
func TestStockgate_SKUWithoutAllItsPartsIsUnknownAndAffectsNoOther(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	o := layout.Options{Type: layout.CounterUsers, Key: "{$sku_1}:{$sku_2}:stock", UsersKey: "{$sku_1}:{$sku_2}:uids"}
	r, client := clustered(t, nodes, o), nodes.Client()
	skus := []string{"good:activity", ":", "a", "a:", ":b", "::", "good:a:b"}
	for _, key := range []string{"{good}:{activity}:stock", "{a}:{}:stock", "{}:{b}:stock", "{}:{}:stock"} {
		if err := client.Set(t.Context(), key, 5, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	out := make([]layout.Reading, len(skus))
	if err := r.Read(t.Context(), skus, out); err != nil {
		t.Fatal(err)
	}
	for i, sku := range skus {
		if out[i].Fault != nil || out[i].Exists != (i == 0) {
			t.Errorf("%q: %+v", sku, out[i])
		}
	}
	for range 20 {
		all := []Buyer{{SKU: "good:activity", User: []byte("7")}, {SKU: ":", User: []byte("7")},
			{SKU: ":b", User: []byte("7")}}
		if err := r.Bought(t.Context(), all); err != nil || all[0].Fault != nil {
			t.Fatalf("%v, %+v", err, all)
		}
	}
	for _, sku := range skus[1:6] {
		if err := r.Set(t.Context(), sku, 1); !errors.Is(err, layout.ErrNotWritable) {
			t.Errorf("set %q: %v", sku, err)
		}
		if _, err := r.Add(t.Context(), sku, 1); !errors.Is(err, layout.ErrNotWritable) {
			t.Errorf("add to %q: %v", sku, err)
		}
		if _, err := r.Mirror(t.Context(), sku, 1, 1, 1); !errors.Is(err, layout.ErrNotWritable) {
			t.Errorf("mirror to %q: %v", sku, err)
		}
	}
}
