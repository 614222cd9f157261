package settle

import (
	"context"
	"fmt"
	"time"
)

// on is the state of a ledger that sells.
const (
	on    = "on"
	ended = "ended"
)

// Paid counts the paid units of a SKU, and how often it is asked.
type Paid struct {
	Count func(ctx context.Context, sku string) (units int64, err error)
	Every time.Duration
}

// EndPaid ends each SKU that is on sale, that has sold every unit, and of which every unit is paid. What is paid alone
// does not end a SKU: the count may be that of an earlier sale. A SKU that has ended by this, and of which units are
// free again, is put on sale again: the hours of its sale decide whether it sells.
func (s *Settler) EndPaid(ctx context.Context) error {
	skus, _, err := s.stream.SKUs(ctx)
	for len(skus) > 0 && err == nil {
		n := min(len(skus), skusAtOnce)
		err = s.endPaidOf(ctx, skus[:n])
		skus = skus[n:]
	}
	return err
}

func (s *Settler) endPaidOf(ctx context.Context, skus []string) error {
	ledgers, err := s.stream.Ledgers(ctx, skus)
	if err != nil {
		return err
	}
	for i, l := range ledgers {
		if s.o.Home.has(skus[i], l) && l.State == ended && l.paid && l.Held+l.Sold < l.Total {
			if err := s.reopen(ctx, skus[i], l); err != nil {
				return err
			}
		}
		if !s.o.Home.has(skus[i], l) || l.State != on || l.Total < 1 || l.Sold != l.Total || l.Held != 0 {
			continue
		}
		units, err := s.o.Paid.Count(ctx, skus[i])
		if err != nil {
			return err
		}
		if units < l.Total {
			continue
		}
		if err := s.o.Ledger.End(ctx, skus[i]); err != nil {
			return fmt.Errorf("end %q: %w", skus[i], err)
		}
		s.log.Warn("settle: a SKU has ended, since every unit is paid", "sku", skus[i], "paid", units, "total", l.Total)
	}
	return nil
}

func (s *Settler) reopen(ctx context.Context, sku string, l Ledger) error {
	ok, err := s.o.Ledger.Reopen(ctx, sku)
	if err != nil {
		return fmt.Errorf("reopen %q: %w", sku, err)
	}
	if ok {
		s.log.Warn("settle: a SKU that had ended since every unit was paid is on sale again: units were given back", "sku",
			sku, "free", l.Total-l.Held-l.Sold)
	}
	return nil
}
