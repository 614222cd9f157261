package ledger

import (
	"testing"

	"sluice/internal/storetest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// onSale returns a reserver over a Redis in this process with units of one SKU on sale.
func onSale(b *testing.B, units int64) *Reserver {
	b.Helper()
	s := storetest.Ledger(b)
	ledgertest.Must[protocol.Stock](b)(s.SetTotal(b.Context(), ledgertest.SKU, units, 0))
	ledgertest.Must[protocol.Stock](b)(s.SetState(b.Context(), ledgertest.SKU, protocol.On))
	return opened(b, testOptions(), s, nil)
}

func BenchmarkReserver_RejectFromMemory(b *testing.B) {
	r := onSale(b, 1)
	r.buy("", "")
	o := protocol.Order{SKU: []byte(ledgertest.SKU), Quantity: 1}
	b.ReportAllocs()
	for b.Loop() {
		if _, sold := r.Cached(0, o); !sold {
			b.Fatal("units are free")
		}
	}
}

func BenchmarkReserver_Reserve(b *testing.B) {
	r := onSale(b, 1<<40)
	o := protocol.Order{SKU: []byte(ledgertest.SKU), Quantity: 1}
	b.ReportAllocs()
	for b.Loop() {
		if out := r.Reserve(r.o.Now(), o); out.Code != protocol.Held {
			b.Fatal(out)
		}
	}
}
