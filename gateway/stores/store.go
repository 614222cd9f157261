// Package stores opens what keeps stock for a configuration (the upstream's keys, ledgers, schedules) and presents it
// as the control API wants it. It decides nothing about requests.
package stores

import (
	"context"
	"errors"
	"fmt"

	"sluice/admin"
	"sluice/stockgate"
	"sluice/stockgate/layout"
)

// Store implements admin.Store on stock in the upstream's own form.
type Store struct{ source *stockgate.Redis }

// NewStore returns source as the control API wants it.
func NewStore(source *stockgate.Redis) Store { return Store{source} }

// Read implements admin.Store.
func (s Store) Read(ctx context.Context, sku string) (admin.Stock, error) {
	var out [1]layout.Reading
	if err := s.source.Read(stockgate.FromMaster(ctx), []string{sku}, out[:]); err != nil {
		return admin.Stock{}, err
	}
	return stockFrom(sku, out[0])
}

func stockFrom(sku string, r layout.Reading) (admin.Stock, error) {
	switch {
	case r.Fault != nil:
		return admin.Stock{}, r.Fault
	case !r.Exists:
		return admin.Stock{}, fmt.Errorf("%q: %w: the key of stock.layout does not exist, or not its field", sku,
			admin.ErrNoSKU)
	}
	return admin.Stock{SKU: sku, Left: r.Left, OnSale: r.OnSale}, nil
}

// Set implements admin.Store.
func (s Store) Set(ctx context.Context, sku string, left int64) (admin.Stock, error) {
	if err := admin.CheckSKU(sku); err != nil {
		return admin.Stock{}, err
	}
	if left < 0 {
		return admin.Stock{}, fmt.Errorf("set %q: %w: a stock is 0 or more, not %d", sku, admin.ErrInvalid, left)
	}
	if err := s.source.Set(ctx, sku, left); err != nil {
		return admin.Stock{}, adminError(err)
	}
	return s.Read(ctx, sku)
}

// Add implements admin.Store.
func (s Store) Add(ctx context.Context, sku string, delta int64) (admin.Stock, error) {
	if _, err := s.source.Add(ctx, sku, delta); err != nil {
		return admin.Stock{}, adminError(err)
	}
	return s.Read(ctx, sku)
}

// List implements admin.Store.
func (s Store) List(ctx context.Context, limit int) ([]admin.Stock, error) {
	all, err := s.source.List(stockgate.FromMaster(ctx), limit)
	if err != nil {
		return nil, err
	}
	out := make([]admin.Stock, 0, len(all))
	for _, one := range all {
		row, err := stockFrom(one.SKU, one.Reading)
		if err != nil {
			row = admin.Stock{SKU: one.SKU, Fault: err.Error()}
		}
		out = append(out, row)
	}
	return out, nil
}

// adminError lets admin recognise the store's error.
func adminError(err error) error {
	switch {
	case errors.Is(err, stockgate.ErrUnknownSKU):
		return told{err, admin.ErrNoSKU}
	case errors.Is(err, layout.ErrNotWritable):
		return fmt.Errorf("%w: %w", admin.ErrInvalid, err)
	}
	return err
}

// told is what a store has said, and as which error admin takes it.
type told struct{ said, as error }

func (t told) Error() string   { return t.said.Error() }
func (t told) Unwrap() []error { return []error{t.said, t.as} }
