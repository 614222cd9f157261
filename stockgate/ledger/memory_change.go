package ledger

import (
	"context"
	"errors"
	"fmt"
)

// addition is what an id of Add was used for.
type addition struct {
	id    string
	delta int64
}

// Add implements Store.
func (m *Memory) Add(ctx context.Context, sku string, delta int64, id string) (Stock, error) {
	s, err := m.change(ctx, sku, checkAdd(sku, delta, id), func(b *book) (bool, error) { return b.add(delta, id) })
	if err != nil {
		return s, fmt.Errorf("add to %q: %w", sku, err)
	}
	return s, nil
}

// SetHours implements Store.
func (m *Memory) SetHours(ctx context.Context, sku string, opens, closes int64) (Stock, error) {
	s, err := m.change(ctx, sku, checkHours(sku, opens, closes), func(b *book) (bool, error) {
		changed := opens != b.Opens || closes != b.Closes
		b.Opens, b.Closes = opens, closes
		return changed, nil
	})
	if err != nil {
		return s, fmt.Errorf("set hours of %q: %w", sku, err)
	}
	return s, nil
}

// change lets do change the ledger of sku, unless what is asked for is wrong.
func (m *Memory) change(ctx context.Context, sku string, wrong error, do func(*book) (changed bool, err error)) (Stock, error) {
	if err := errors.Join(ctx.Err(), wrong); err != nil {
		return Stock{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.books[sku]
	if b == nil {
		return Stock{}, ErrUnknownSKU
	}
	changed, err := do(b)
	b.commit(changed)
	return b.Stock, err
}

// add is Add; it reports whether anything changed.
func (b *book) add(delta int64, id string) (bool, error) {
	for _, a := range b.added {
		switch {
		case id == "" || a.id != id:
		case a.delta != delta:
			return false, ErrOtherDelta
		default:
			return false, nil
		}
	}
	total := b.Total + delta
	if total < b.Held+b.Sold {
		return false, tooFew(total, b.Held, b.Sold)
	}
	if err := checkNumber("total", total); err != nil {
		return false, err
	}
	b.Total = total
	if id != "" {
		b.added = append(b.added, addition{id, delta})
		b.added = b.added[max(0, len(b.added)-maxAdded):]
	}
	return true, nil
}
