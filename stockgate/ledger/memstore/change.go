package memstore

import (
	"context"
	"errors"

	"sluice/stockgate/ledger/protocol"
)

// addition is what an id of Add was used for.
type addition struct {
	id    string
	delta int64
}

// Add implements Store.
func (m *Store) Add(ctx context.Context, sku string, delta int64, id string) (s protocol.Stock, err error) {
	defer protocol.Describe(&err, "add to", sku)
	return m.change(ctx, sku, protocol.CheckAdd(sku, delta, id),
		func(b *memoryStock) (bool, error) { return b.add(delta, id) })
}

// SetSchedule implements Store.
func (m *Store) SetSchedule(ctx context.Context, sku string, opens, closes int64) (s protocol.Stock, err error) {
	defer protocol.Describe(&err, "set hours of", sku)
	return m.change(ctx, sku, protocol.CheckSchedule(sku, opens, closes), func(b *memoryStock) (bool, error) {
		changed := opens != b.Opens || closes != b.Closes
		b.Opens, b.Closes = opens, closes
		return changed, nil
	})
}

// SetState implements Store.
func (m *Store) SetState(ctx context.Context, sku string, state protocol.State) (s protocol.Stock, err error) {
	defer protocol.Describe(&err, "set state of", sku)
	return m.change(ctx, sku, errors.Join(protocol.CheckSKU(sku), protocol.CheckState(state)),
		func(b *memoryStock) (bool, error) {
			changed := state != b.State || state == protocol.Frozen
			b.State, b.Why = state, ""
			if state == protocol.Frozen {
				b.Epoch++
				b.Why = "operator"
			} else {
				b.over.before = ""
			}
			return changed, nil
		})
}

// change lets do change the ledger of sku, unless what is asked for is wrong.
func (m *Store) change(ctx context.Context, sku string, wrong error,
	do func(*memoryStock) (changed bool, err error)) (protocol.Stock, error) {
	if err := errors.Join(ctx.Err(), wrong); err != nil {
		return protocol.Stock{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.stocks[sku]
	if b == nil {
		return protocol.Stock{}, protocol.ErrUnknownSKU
	}
	changed, err := do(b)
	b.commit(changed)
	return b.Stock, err
}

// add is Add; it reports whether anything changed.
func (b *memoryStock) add(delta int64, id string) (bool, error) {
	for _, a := range b.added {
		switch {
		case id == "" || a.id != id:
		case a.delta != delta:
			return false, protocol.ErrOtherDelta
		default:
			return false, nil
		}
	}
	total := b.Total + delta
	if total < b.Held+b.Sold {
		return false, protocol.TotalTooSmall(total, b.Held, b.Sold)
	}
	if err := protocol.CheckNumber("total", total); err != nil {
		return false, err
	}
	b.Total = total
	if id != "" {
		b.added = append(b.added, addition{id, delta})
		b.added = b.added[max(0, len(b.added)-protocol.MaxAdditions):]
	}
	return true, nil
}

// Create implements Store.
func (m *Store) Create(ctx context.Context, sku string, o protocol.Opening) (s protocol.Stock, made bool, err error) {
	defer protocol.Describe(&err, "create", sku)
	if err := errors.Join(ctx.Err(), o.Check(sku)); err != nil {
		return s, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.stocks[sku]; b != nil {
		return b.Stock, false, nil
	}
	b := m.newBook(sku)
	b.Total, b.Limit, b.Opens, b.Closes = o.Total, o.Limit, o.Opens, o.Closes
	m.stocks[sku] = b
	b.commit(true)
	return b.Stock, true, nil
}
