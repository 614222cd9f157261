package proxy

import (
	"encoding/json"
	"testing"

	"sluice/proxy/param"
)

func FuzzStockQuery(f *testing.F) {
	for _, seed := range [][2]string{{"/.sluice/stock/1001", ""}, {"/.sluice/stock", "sku=a&sku=b"},
		{"/.sluice/stock/%zz", ";"}, {"/.sluice/stock/a", "sku=%7b"}} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, path, query []byte) {
		skus, one := stockQuery(path, query)
		if one && len(skus) != 1 || len(skus) > maxStockQuery {
			t.Errorf("%d SKUs", len(skus))
		}
		for _, sku := range skus {
			if !param.ValidSKU(sku) {
				t.Errorf("%q is asked for", sku)
			}
			if text := appendSKU(nil, sku); !json.Valid(text) {
				t.Errorf("%q is no JSON", text)
			}
		}
	})
}

func BenchmarkStockStatus_Append(b *testing.B) {
	show, sku := StockStatusOptions{Few: 10}, []byte("1001")
	status, text := StockStatus{Phase: PhaseInStock, Free: 7, Closes: 9_000}, []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		text = show.Append(text[:0], sku, status, 1_000)
		tag := newStockTag()
		tag.Add(show, sku, status)
	}
}
