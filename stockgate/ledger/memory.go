package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Memory keeps ledgers in this process alone, and forgets them when it ends: for trials and the demonstration. It is
// safe for concurrent use. Its zero value is not ready; use NewMemory.
type Memory struct {
	mu    sync.Mutex
	books map[string]*book // by SKU; only SetTotal and Create add one
	ears  map[*ear]bool    // of those who listen
}

// NewMemory returns a Memory without any ledger.
func NewMemory() *Memory { return &Memory{books: make(map[string]*book), ears: make(map[*ear]bool)} }

// Reserve implements Store.
func (m *Memory) Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []Item, codes []Code) (Hint, error) {
	err := errors.Join(ctx.Err(), checkItems(sku, items, len(codes), true), checkTimes(now, deadline), checkNumber("epoch", epoch))
	if err != nil {
		return Hint{}, fmt.Errorf("reserve %q: %w", sku, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.books[sku]
	changed := false
	for i, item := range items {
		switch {
		case b == nil:
			codes[i] = UnknownSKU
		case epoch != 0 && epoch != b.Epoch:
			codes[i] = StaleEpoch
		default:
			codes[i] = b.reserve(item, now, deadline)
			changed = changed || codes[i] == Held
		}
	}
	if changed {
		b.Taken = b.Ver + 1
	}
	return b.commit(changed), nil
}

// Finish implements Store.
func (m *Memory) Finish(ctx context.Context, sku string, now, keep int64, op Op, items []Item, done []Done) (Hint, error) {
	err := errors.Join(ctx.Err(), checkFinish(sku, op, items, len(done)), checkTimes(now, keep))
	if err != nil {
		return Hint{}, fmt.Errorf("%s %q: %w", op, sku, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.books[sku]
	changed := false
	for i, item := range items {
		if b == nil {
			done[i] = NoLedger
			continue
		}
		done[i] = b.finish(op, item, keep)
		changed = changed || done[i] == Changed || done[i] == OverTotal
	}
	if changed && op == Adopt {
		b.Taken = b.Ver + 1
	}
	return b.commit(changed), nil
}

// Sweep implements Store.
func (m *Memory) Sweep(ctx context.Context, sku string, now, lease int64, limit int) ([]Record, error) {
	if err := errors.Join(ctx.Err(), checkSweep(sku, limit), checkTimes(now, lease)); err != nil {
		return nil, fmt.Errorf("sweep %q: %w", sku, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.books[sku]
	if b == nil {
		return nil, nil
	}
	return b.sweep(now, lease, limit), nil
}

// SweepAll implements Store.
func (m *Memory) SweepAll(ctx context.Context, skus []string, now, lease int64) []Swept {
	return sweepEach(ctx, m, skus, now, lease)
}

// sweepEach is a SweepAll of a store where nothing is gained by asking about several at once.
func sweepEach(ctx context.Context, s Store, skus []string, now, lease int64) []Swept {
	swept := make([]Swept, len(skus))
	for i, sku := range skus {
		swept[i].Holds, swept[i].Err = s.Sweep(ctx, sku, now, lease, fewLeases)
		swept[i].More = len(swept[i].Holds) == fewLeases
	}
	return swept
}

// Find implements Store.
func (m *Memory) Find(ctx context.Context, sku, serial string) (r Record, ok bool, err error) {
	if err := errors.Join(ctx.Err(), checkSKU(sku), checkSerial(serial)); err != nil {
		return Record{}, false, fmt.Errorf("find %q: %w", serial, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.books[sku]; b != nil {
		r, ok = b.records[serial]
	}
	return outside(r), ok, nil
}

// Look implements Store.
func (m *Memory) Look(ctx context.Context, sku string) (s Stock, ok bool, err error) {
	if err := errors.Join(ctx.Err(), checkSKU(sku)); err != nil {
		return Stock{}, false, fmt.Errorf("look at %q: %w", sku, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.books[sku]
	if b == nil {
		return Stock{}, false, nil
	}
	return b.Stock, true, nil
}

// LookAll implements Store.
func (m *Memory) LookAll(ctx context.Context, skus []string, tell func(int, Hint, bool, error)) {
	lookEach(ctx, m, skus, tell)
}

// lookEach is a LookAll of a store where nothing is gained by asking about several at once.
func lookEach(ctx context.Context, s Store, skus []string, tell func(int, Hint, bool, error)) {
	for i, sku := range skus {
		found, ok, err := s.Look(ctx, sku)
		tell(i, found.Hint, ok, err)
	}
}

// SetTotal implements Store.
func (m *Memory) SetTotal(ctx context.Context, sku string, total, limit int64) (Stock, error) {
	err := errors.Join(ctx.Err(), checkTotal(sku, total, limit))
	if err != nil {
		return Stock{}, fmt.Errorf("set total of %q: %w", sku, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.books[sku]
	switch {
	case b == nil && limit == KeepLimit:
		return Stock{}, fmt.Errorf("set total of %q: %w", sku, ErrUnknownSKU)
	case b == nil:
		b = newBook(func(h Hint) { m.tell(sku, h) })
		m.books[sku] = b
	case limit == KeepLimit:
		limit = b.Limit
	}
	if total < b.Held+b.Sold {
		return b.Stock, fmt.Errorf("set total of %q: %w", sku, tooFew(total, b.Held, b.Sold))
	}
	changed := b.Ver == 0 || total != b.Total || limit != b.Limit
	b.Total, b.Limit = total, limit
	b.commit(changed)
	return b.Stock, nil
}

// SetState implements Store.
func (m *Memory) SetState(ctx context.Context, sku string, state State) (Stock, error) {
	if err := errors.Join(ctx.Err(), checkSKU(sku), checkState(state)); err != nil {
		return Stock{}, fmt.Errorf("set state of %q: %w", sku, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.books[sku]
	if b == nil {
		return Stock{}, fmt.Errorf("set state of %q: %w", sku, ErrUnknownSKU)
	}
	changed := state != b.State || state == Frozen
	b.Why = ""
	if state == Frozen {
		b.Epoch++
		b.Why = "operator"
	}
	b.State = state
	b.commit(changed)
	return b.Stock, nil
}
