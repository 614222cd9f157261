package ledger

import (
	"context"
	"fmt"
)

// Add implements Store.
func (r *Redis) Add(ctx context.Context, sku string, delta int64, id string) (Stock, error) {
	s, found, err := r.change(ctx, "add", sku, checkAdd(sku, delta, id), r.events, delta, id, maxAdded)
	switch {
	case err != nil:
	case found == refused:
		err = tooFew(s.Total+delta, s.Held, s.Sold)
	case found == conflict:
		err = ErrOtherDelta
	}
	if err != nil {
		return s, fmt.Errorf("add to %q: %w", sku, err)
	}
	return s, nil
}

// SetHours implements Store.
func (r *Redis) SetHours(ctx context.Context, sku string, opens, closes int64) (Stock, error) {
	s, _, err := r.change(ctx, "set_hours", sku, checkHours(sku, opens, closes), r.events, opens, closes)
	if err != nil {
		return s, fmt.Errorf("set hours of %q: %w", sku, err)
	}
	return s, nil
}

// change runs a script that changes a ledger, unless what is asked for is wrong.
func (r *Redis) change(ctx context.Context, name, sku string, wrong error, args ...any) (s Stock, found int64, err error) {
	if wrong != nil {
		return Stock{}, refused, wrong
	}
	reply, err := r.run(ctx, name, sku, args...)
	switch {
	case err != nil:
		return Stock{}, refused, err
	case reply == nil:
		return Stock{}, refused, ErrUnknownSKU
	}
	return stockOf(reply)
}
