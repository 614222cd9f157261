package ledger

import (
	"testing"

	"sluice/internal/testkit"
)

// onSale returns a reserver over a Redis in this process with units of one SKU on sale.
func onSale(b *testing.B, units int64) *Reserver {
	b.Helper()
	s := storeInProcess(b)
	testkit.Must[Stock](b)(s.SetTotal(b.Context(), testSKU, units, 0))
	testkit.Must[Stock](b)(s.SetState(b.Context(), testSKU, On))
	return opened(b, testOptions(), s, nil)
}

func BenchmarkReserver_RejectFromMemory(b *testing.B) {
	r := onSale(b, 1)
	r.buy("", "")
	o := Order{SKU: []byte(testSKU), Quantity: 1}
	b.ReportAllocs()
	for b.Loop() {
		if _, sold := r.Cached(0, o); !sold {
			b.Fatal("units are free")
		}
	}
}

func BenchmarkReserver_Reserve(b *testing.B) {
	r := onSale(b, 1<<40)
	o := Order{SKU: []byte(testSKU), Quantity: 1}
	b.ReportAllocs()
	for b.Loop() {
		if out := r.Reserve(r.o.Now(), o); out.Code != Held {
			b.Fatal(out)
		}
	}
}
