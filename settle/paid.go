package settle

import (
	"context"
	"errors"
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
	var faults []error
	away := false
	for l, err := range s.stream.All(ctx) {
		switch {
		case err == nil:
			faults = append(faults, s.endPaidOf(ctx, l.SKU, l.Ledger))
		case !away: // one server has many SKUs
			away, faults = true, append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func (s *Settler) endPaidOf(ctx context.Context, sku string, l Ledger) error {
	switch {
	case !s.o.Home.has(sku, l):
		return nil
	case l.State == ended && l.paid && l.Held+l.Sold < l.Total:
		return s.reopen(ctx, sku, l)
	case l.State != on || l.Total < 1 || l.Sold != l.Total || l.Held != 0:
		return nil
	}
	c, ok, err := s.db.Cursor(ctx, sku)
	if err != nil || ok && l.continuing(&c).Born != c.Born { // the database is still in the sale before
		return err
	}
	units, err := s.o.Paid.Count(ctx, sku)
	if err != nil || units < l.Total {
		return err
	}
	if err := s.o.Ledger.End(ctx, sku); err != nil {
		return fmt.Errorf("end %q: %w", sku, err)
	}
	s.log.Warn("settle: a SKU has ended, since every unit is paid", "sku", sku, "paid", units, "total", l.Total)
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
