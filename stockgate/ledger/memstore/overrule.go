package memstore

import (
	"context"
	"errors"
	"fmt"

	"sluice/stockgate/ledger/protocol"
)

// overruling is what a SKU's state is overruled by.
type overruling struct {
	number int64          // the highest that came
	before protocol.State // "" = that has ended
}

// Overrule implements protocol.Overruler.
func (m *Store) Overrule(ctx context.Context, sku string, state protocol.State, number int64) (
	s protocol.Stock, before protocol.State, inForce bool, err error,
) {
	if state != protocol.Paused && state != protocol.Ended {
		return s, "", false, fmt.Errorf("overrule %q: it cannot be %q for a while", sku, state)
	}
	err = m.overrule(ctx, sku, number, func(b *memoryStock) {
		switch {
		case number > b.over.number && b.State != protocol.Frozen:
			b.over.number = number
			if b.over.before == "" {
				b.over.before = b.State
			}
			b.become(state)
		case number != b.over.number:
			s, before = b.Stock, b.over.before
			return
		}
		s, before, inForce = b.Stock, b.over.before, b.over.before != ""
	})
	return s, before, inForce, err
}

// Reinstate implements protocol.Overruler. A ledger in memory is frozen by operators alone, who open it themselves.
func (m *Store) Reinstate(ctx context.Context, sku string, number int64) (s protocol.Stock, err error) {
	err = m.overrule(ctx, sku, number, func(b *memoryStock) {
		if number >= b.over.number {
			if b.over.before != "" && b.State != protocol.Frozen {
				b.become(b.over.before)
			}
			b.over = overruling{number: number}
		}
		s = b.Stock
	})
	return s, err
}

// overrule does a thing to the ledger of a SKU.
func (m *Store) overrule(ctx context.Context, sku string, number int64, do func(b *memoryStock)) (err error) {
	defer protocol.Describe(&err, "overrule", sku)
	_, err = m.change(ctx, sku, errors.Join(protocol.CheckSKU(sku), protocol.CheckOverruling(number)),
		func(b *memoryStock) (bool, error) { do(b); return false, nil })
	return err
}

// become puts a SKU into a state.
func (b *memoryStock) become(state protocol.State) {
	changed := b.State != state
	b.State = state
	b.commit(changed)
}
