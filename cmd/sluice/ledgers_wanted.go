package main

import (
	"context"
	"errors"

	"sluice/stockgate/ledger"
)

// wanted is what operators ask of a store beyond the way of an order.
type wanted interface {
	Add(ctx context.Context, sku string, delta int64, id string) (ledger.Stock, error)
	SKUs(ctx context.Context, limit int) ([]string, error)
	Records(ctx context.Context, sku string, see func(ledger.Record) bool) error
}

func (l ledgers) more() (wanted, error) {
	if more, ok := l.store.(wanted); ok {
		return more, nil
	}
	return nil, errors.New("not available yet: this version's ledgers cannot be listed or added to")
}
