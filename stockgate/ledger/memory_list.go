package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// SKUs implements Store.
func (m *Memory) SKUs(ctx context.Context, limit int) ([]string, error) {
	if err := errors.Join(ctx.Err(), checkList(limit)); err != nil {
		return nil, fmt.Errorf("list skus: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Sorted(maps.Keys(m.books))
	return all[:min(limit, len(all))], nil
}

// Records implements Store.
func (m *Memory) Records(ctx context.Context, sku string, see func(Record) bool) error {
	if err := errors.Join(ctx.Err(), checkSKU(sku)); err != nil {
		return fmt.Errorf("list records of %q: %w", sku, err)
	}
	for _, r := range m.copied(sku) {
		if !see(outside(r)) {
			return nil
		}
	}
	return nil
}

// copied are all records of a SKU, so that whoever sees them keeps nobody waiting.
func (m *Memory) copied(sku string) []Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.books[sku]; b != nil {
		return slices.Collect(maps.Values(b.records))
	}
	return nil
}
