package ledger

import (
	"context"
	"errors"
	"fmt"
)

// Opening is what a ledger begins with.
type Opening struct {
	Total, Limit  int64 // units, and units a person; 0 = no limit
	Opens, Closes int64 // Unix ms; 0 = no such bound
}

func (o Opening) check(sku string) error {
	if o.Limit == KeepLimit {
		return errors.New("how many a person may have is not said")
	}
	return errors.Join(checkTotal(sku, o.Total, o.Limit), checkHours(sku, o.Opens, o.Closes))
}

// Create implements Store.
func (r *Redis) Create(ctx context.Context, sku string, o Opening) (s Stock, made bool, err error) {
	err = o.check(sku)
	if _, lost := r.gone(sku); err == nil && lost {
		err = ErrLost
	}
	if err == nil {
		err = r.register(ctx, sku)
	}
	var reply []any
	if err == nil {
		reply, err = r.run(ctx, "create", sku, r.events, o.Total, o.Limit, o.Opens, o.Closes)
	}
	var found int64
	if err == nil {
		s, found, err = stockOf(reply)
	}
	if err != nil {
		return Stock{}, false, fmt.Errorf("create %q: %w", sku, err)
	}
	return s, found == done, nil
}

// Create implements Store.
func (m *Memory) Create(ctx context.Context, sku string, o Opening) (s Stock, made bool, err error) {
	if err := errors.Join(ctx.Err(), o.check(sku)); err != nil {
		return Stock{}, false, fmt.Errorf("create %q: %w", sku, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.books[sku]; b != nil {
		return b.Stock, false, nil
	}
	b := newBook(func(h Hint) { m.tell(sku, h) })
	b.Total, b.Limit, b.Opens, b.Closes = o.Total, o.Limit, o.Opens, o.Closes
	m.books[sku] = b
	b.commit(true)
	return b.Stock, true, nil
}
