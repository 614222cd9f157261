package ledger

import (
	"context"
	"maps"
	"slices"

	"sluice/stockgate/ledger/protocol"
)

func (s *shelf) Add(ctx context.Context, sku string, delta int64, _ string) (st protocol.Stock, err error) {
	err = s.do(ctx, "add", func() {
		b := s.skus[sku]
		b.stock.Total += delta
		b.move(0, 0, "")
		st = b.stock
	})
	return st, err
}

func (s *shelf) SetHours(ctx context.Context, sku string, opens, closes int64) (st protocol.Stock, err error) {
	err = s.do(ctx, "hours", func() {
		b := s.skus[sku]
		b.stock.Opens, b.stock.Closes = opens, closes
		b.move(0, 0, "")
		st = b.stock
	})
	return st, err
}

func (s *shelf) Create(
	ctx context.Context,
	sku string,
	o protocol.Opening,
) (st protocol.Stock, made bool, err error) {
	err = s.do(ctx, "create", func() {
		if made = s.skus[sku] == nil; made {
			s.put(sku, o.Total, o.Limit)
			s.skus[sku].stock.Opens, s.skus[sku].stock.Closes = o.Opens, o.Closes
		}
		st = s.skus[sku].stock
	})
	return st, made, err
}

func (s *shelf) SKUs(ctx context.Context, limit int) (all []string, err error) {
	err = s.do(ctx, "skus", func() { all = slices.Sorted(maps.Keys(s.skus)) })
	return all[:min(limit, len(all))], err
}

// asked is how many calls were made for orders.
func (s *shelf) asked() int { return s.count("reserve") + s.count("lookup") }

// FindAll makes one call for all.
func (s *shelf) FindAll(ctx context.Context, orders []protocol.OrderName) []protocol.Found {
	found := make([]protocol.Found, len(orders))
	err := s.do(ctx, "lookup", func() {
		for i, o := range orders {
			if b := s.skus[o.SKU]; b != nil {
				found[i].Record, found[i].OK = b.records[o.Serial]
			}
		}
	})
	for i := range found {
		found[i].Err = err
	}
	return found
}

// Records gets past each record as it is at its turn, and lets others in between.
func (s *shelf) Records(ctx context.Context, sku string, see func(protocol.Record) bool) error {
	var serials []string
	err := s.do(ctx, "records", func() {
		if b := s.skus[sku]; b != nil {
			serials = slices.Collect(maps.Keys(b.records))
		}
	})
	if err != nil {
		return err
	}
	for _, serial := range serials {
		if !see(s.record(sku, serial)) {
			return nil
		}
	}
	return nil
}
