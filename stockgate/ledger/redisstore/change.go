package redisstore

import (
	"context"
	"fmt"

	"sluice/stockgate/ledger/protocol"
)

// Add implements Store.
func (r *Store) Add(ctx context.Context, sku string, delta int64, id string) (protocol.Stock, error) {
	s, found, err := r.change(ctx, "add", sku, protocol.CheckAdd(sku, delta, id), r.events, delta, id,
		protocol.MaxAdditions)
	switch {
	case err != nil:
	case found == rejected:
		err = protocol.TotalTooSmall(s.Total+delta, s.Held, s.Sold)
	case found == conflict:
		err = protocol.ErrOtherDelta
	}
	if err != nil {
		return s, fmt.Errorf("add to %q: %w", sku, err)
	}
	return s, nil
}

// SetSchedule implements Store.
func (r *Store) SetSchedule(ctx context.Context, sku string, opens, closes int64) (protocol.Stock, error) {
	s, _, err := r.change(ctx, "set_schedule", sku, protocol.CheckSchedule(sku, opens, closes), r.events, opens, closes)
	if err != nil {
		return s, fmt.Errorf("set hours of %q: %w", sku, err)
	}
	return s, nil
}

// change runs a script that changes a ledger, unless what is asked for is wrong.
func (r *Store) change(ctx context.Context, name, sku string, wrong error,
	args ...any) (s protocol.Stock, found int64, err error) {
	if wrong != nil {
		return protocol.Stock{}, rejected, wrong
	}
	reply, err := r.callScript(ctx, name, sku, args...)
	switch {
	case err != nil:
		return protocol.Stock{}, rejected, err
	case reply == nil:
		return protocol.Stock{}, rejected, r.noLedger(ctx, sku)
	}
	return stockOf(reply)
}

// Create implements Store.
func (r *Store) Create(ctx context.Context, sku string, o protocol.Opening) (s protocol.Stock, made bool, err error) {
	var reply []any
	if err = o.Check(sku); err == nil {
		reply, err = r.makeLedger(ctx, "create", sku, r.events, o.Total, o.Limit, o.Opens, o.Closes)
	}
	var found int64
	if err == nil {
		s, found, err = stockOf(reply)
	}
	if err != nil {
		return protocol.Stock{}, false, fmt.Errorf("create %q: %w", sku, err)
	}
	return s, found == done, nil
}
