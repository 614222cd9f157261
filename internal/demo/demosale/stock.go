package demosale

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/app"
	"sluice/internal/demo"
	"sluice/stockgate"
	"sluice/stockgate/ledger/memstore"
	"sluice/stockgate/ledger/protocol"
)

// demoStock is where the units of a sale are: with the shop, or in the gate's ledger. The other one is nil.
type demoStock struct{ app.MemoryStock }

// newDemoStock puts units where they are taken.
func newDemoStock(ctx context.Context, reserve bool, units int64) (s demoStock, err error) {
	if reserve {
		s.Ledger = memstore.New()
		_, err = s.Ledger.SetTotal(ctx, demoSKU, units, 1)
		return s, err
	}
	s.Shop = stockgate.NewMemory()
	return s, s.Shop.Set(ctx, demoSKU, units)
}

// gate is the rung that the order route stands on.
func (s demoStock) gate() string {
	if s.Ledger != nil {
		return "reserve"
	}
	return "check"
}

// shopOptions are those of a shop that sells units.
func (s demoStock) shopOptions(units int64) demo.ShopOptions {
	o := demo.ShopOptions{SKU: demoSKU, Units: units, Reserved: s.Ledger != nil}
	if s.Shop != nil {
		o.Stock = s.Shop
	}
	return o
}

// books tell what the ledger says, and what the reserver in front of it has counted; nil without a ledger.
func (s demoStock) books(orders prometheus.Collector) func() demo.Ledger {
	if s.Ledger == nil {
		return nil
	}
	return booksOf(s.Ledger, orders)
}

// booksOf are those of a ledger. One that is away has no units.
func booksOf(ledger protocol.Store, orders prometheus.Collector) func() demo.Ledger {
	counted := prometheus.NewRegistry()
	counted.MustRegister(orders)
	return func() demo.Ledger {
		now, _, err := ledger.ReadStock(context.Background(), demoSKU)
		if err != nil {
			return demo.Ledger{}
		}
		return demo.Ledger{
			Total: now.Total, Free: now.Free, Held: now.Held, Sold: now.Sold,
			Released: total(counted, "sluice_reservations_total", "event", "released"),
			Resolved: total(counted, "sluice_resolver_outcomes_total", "outcome", "confirmed"),
		}
	}
}

// total sums what a counter has counted under one value of a label.
func total(from prometheus.Gatherer, name, label, value string) (sum int64) {
	families, err := from.Gather()
	if err != nil {
		panic("BUG: our own metrics contradict each other: " + err.Error())
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, pair := range m.GetLabel() {
				if pair.GetName() == label && pair.GetValue() == value {
					sum += int64(m.GetCounter().GetValue())
				}
			}
		}
	}
	return sum
}
