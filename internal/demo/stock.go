package demo

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/embedredis"
	"sluice/internal/load"
	"sluice/stockgate"
	"sluice/stockgate/ledger"
)

// demoStock is where the units of a sale are, in a Redis of this process: with the shop, or in the gate's ledger. The
// other one is nil.
type demoStock struct {
	memory *embedredis.Server
	Shop   *stockgate.Redis
	Ledger *ledger.Store
}

// newDemoStock puts units where they are taken. The caller closes it.
func newDemoStock(ctx context.Context, reserve bool, units int64) (s demoStock, err error) {
	s.memory = embedredis.Start()
	if reserve {
		c := config.Default()
		c.Name = "demo" // as demoConfig says
		s.Ledger, err = stores.MemoryLedger(s.memory, c, true, slog.New(slog.DiscardHandler))
		if err == nil {
			_, err = s.Ledger.SetTotal(ctx, SKU, units, 1)
		}
	} else if s.Shop, err = stores.MemoryShopStock(s.memory, config.Default(), slog.New(slog.DiscardHandler)); err == nil {
		err = s.Shop.Set(ctx, SKU, units)
	}
	if err != nil {
		s.close()
	}
	return s, err
}

func (s demoStock) close() {
	if s.Ledger != nil {
		_ = s.Ledger.Close()
	}
	if s.Shop != nil {
		_ = s.Shop.Close()
	}
	s.memory.Stop()
}

// gate is the rung that the order route stands on.
func (s demoStock) gate() string {
	if s.Ledger != nil {
		return "reserve"
	}
	return "check"
}

// shopOptions are those of a shop that sells the units.
func (s demoStock) shopOptions(d *Options) load.ShopOptions {
	o := load.ShopOptions{Units: d.Units, Reserved: s.Shop == nil}
	o.Capacity, o.Latency = d.pace()
	if s.Shop != nil {
		o.Take = s.takeUnit
	}
	return o
}

// takeUnit takes a unit of the shop's, and gives it back where it was none.
func (s demoStock) takeUnit(ctx context.Context) (bool, error) {
	left, err := s.Shop.Add(ctx, SKU, -1)
	if err == nil && left < 0 {
		_, err = s.Shop.Add(ctx, SKU, 1)
	}
	return err == nil && left >= 0, nil // a stock that is away has none
}

// books tell what the ledger says, and what the reserver in front of it has counted; nil without a ledger.
func (s demoStock) books(orders prometheus.Collector) func() load.Ledger {
	if s.Ledger == nil {
		return nil
	}
	return booksOf(s.Ledger, orders)
}

// booksOf are those of a ledger. One that is away has no units.
func booksOf(store *ledger.Store, orders prometheus.Collector) func() load.Ledger {
	counted := prometheus.NewRegistry()
	counted.MustRegister(orders)
	return func() load.Ledger {
		now, _, err := store.ReadStock(context.Background(), SKU)
		if err != nil {
			return load.Ledger{}
		}
		return load.Ledger{
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
