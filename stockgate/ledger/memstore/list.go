package memstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sluice/stockgate/ledger/protocol"
)

// SKUs implements Store.
func (m *Store) SKUs(ctx context.Context, limit int) ([]string, error) {
	if err := errors.Join(ctx.Err(), protocol.CheckList(limit)); err != nil {
		return nil, fmt.Errorf("list skus: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Sorted(maps.Keys(m.stocks))
	return all[:min(limit, len(all))], nil
}

// LostSKUs implements protocol.Recreator: memory loses no ledger.
func (m *Store) LostSKUs(context.Context, int) ([]string, error) { return nil, nil }

// Records implements Store.
func (m *Store) Records(ctx context.Context, sku string, see func(protocol.Record) bool) error {
	if err := errors.Join(ctx.Err(), protocol.CheckSKU(sku)); err != nil {
		return fmt.Errorf("list records of %q: %w", sku, err)
	}
	for _, r := range m.copied(sku) {
		if !see(r) {
			return nil
		}
	}
	return nil
}

// copied are all records of a SKU, so that a caller who reads them slowly delays no other.
func (m *Store) copied(sku string) []protocol.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.stocks[sku]; b != nil {
		return slices.Collect(maps.Values(b.records))
	}
	return nil
}
