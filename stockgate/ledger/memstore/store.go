// Package memstore keeps ledgers in the memory of one process.
//
// It promises the contract of protocol.Store, as the Redis store does.
//
// It does not survive its process: it is for trials and the demonstration.
package memstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sluice/stockgate/ledger/protocol"
)

// Store keeps ledgers in this process alone, and forgets them when it ends: for trials and the demonstration. It is
// safe for concurrent use. Its zero value is not ready; use New.
type Store struct {
	mu          sync.Mutex
	stocks      map[string]*memoryStock // by SKU; only SetTotal and Create add one
	subscribers map[*subscriber]bool    // of those who listen
	slots       slots
}

// New returns a Memory without any ledger.
func New() *Store {
	return &Store{stocks: make(map[string]*memoryStock), subscribers: make(map[*subscriber]bool)}
}

// Reserve implements Store.
func (m *Store) Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []protocol.Item,
	codes []protocol.Code) (h protocol.StockVersion, err error) {
	defer protocol.Describe(&err, "reserve", sku)
	err = errors.Join(ctx.Err(), protocol.CheckItems(sku, items, len(codes), true), protocol.CheckTimes(now, deadline),
		protocol.CheckNumber("epoch", epoch))
	if err != nil {
		return h, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.stocks[sku]
	changed := false
	for i, item := range items {
		switch {
		case b == nil:
			codes[i] = protocol.UnknownSKU
		case epoch != 0 && epoch != b.Epoch:
			codes[i] = protocol.StaleEpoch
		default:
			codes[i] = b.reserve(item, now, deadline)
			changed = changed || codes[i] == protocol.Held
		}
	}
	return b.commit(changed), nil
}

// Finish implements Store.
func (m *Store) Finish(ctx context.Context, sku string, now, keep int64, op protocol.Op, items []protocol.Item,
	done []protocol.Done) (h protocol.StockVersion, err error) {
	defer protocol.Describe(&err, string(op), sku)
	err = errors.Join(ctx.Err(), protocol.CheckFinish(sku, op, items, len(done)), protocol.CheckTimes(now, keep))
	if err != nil {
		return h, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.stocks[sku]
	changed := false
	for i, item := range items {
		if b == nil {
			done[i] = protocol.NoLedger
			continue
		}
		done[i] = b.finish(op, item, keep)
		changed = changed || done[i] == protocol.Changed || done[i] == protocol.Oversold
	}
	return b.commit(changed), nil
}

// Sweep implements Store.
func (m *Store) Sweep(ctx context.Context, sku string, now, lease int64, limit int) (
	holds []protocol.Record, err error,
) {
	defer protocol.Describe(&err, "sweep", sku)
	if err := errors.Join(ctx.Err(), protocol.CheckSweep(sku, limit), protocol.CheckTimes(now, lease)); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.stocks[sku]
	if b == nil {
		return nil, nil
	}
	return b.sweep(now, lease, limit), nil
}

// SweepAll implements Store.
func (m *Store) SweepAll(ctx context.Context, skus []string, now, lease int64) []protocol.Swept {
	return SweepEach(ctx, m, skus, now, lease)
}

// SweepEach is a SweepAll of a store where nothing is gained by asking about several at once.
func SweepEach(ctx context.Context, s protocol.Store, skus []string, now, lease int64) []protocol.Swept {
	swept := make([]protocol.Swept, len(skus))
	for i, sku := range skus {
		swept[i].Holds, swept[i].Err = s.Sweep(ctx, sku, now, lease, protocol.SharedLeases)
		swept[i].More = len(swept[i].Holds) == protocol.SharedLeases
	}
	return swept
}

// Find implements Store.
func (m *Store) Find(ctx context.Context, sku, serial string) (r protocol.Record, ok bool, err error) {
	defer protocol.Describe(&err, "find", serial)
	if err := errors.Join(ctx.Err(), protocol.CheckSKU(sku), protocol.CheckSerial(serial)); err != nil {
		return r, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.stocks[sku]; b != nil {
		r, ok = b.records[serial]
	}
	return r, ok, nil
}

// ReadStock implements Store.
func (m *Store) ReadStock(ctx context.Context, sku string) (s protocol.Stock, ok bool, err error) {
	defer protocol.Describe(&err, "look at", sku)
	if err := errors.Join(ctx.Err(), protocol.CheckSKU(sku)); err != nil {
		return s, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.stocks[sku]; b != nil {
		return b.Stock, true, nil
	}
	return s, false, nil
}

// FindAll implements Store.
func (m *Store) FindAll(ctx context.Context, orders []protocol.OrderName) []protocol.Found {
	found := make([]protocol.Found, len(orders))
	for i, o := range orders {
		f := &found[i]
		f.Record, f.OK, f.Err = m.Find(ctx, o.SKU, o.Serial)
	}
	return found
}

// SetTotal implements Store.
func (m *Store) SetTotal(ctx context.Context, sku string, total, limit int64) (s protocol.Stock, err error) {
	defer protocol.Describe(&err, "set total of", sku)
	if err := errors.Join(ctx.Err(), protocol.CheckTotal(sku, total, limit)); err != nil {
		return s, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.stocks[sku]
	switch {
	case b == nil && limit == protocol.KeepLimit:
		return s, protocol.ErrUnknownSKU
	case b == nil:
		b = m.newBook(sku)
		m.stocks[sku] = b
	case limit == protocol.KeepLimit:
		limit = b.Limit
	}
	if total < b.Held+b.Sold {
		return b.Stock, protocol.TotalTooSmall(total, b.Held, b.Sold)
	}
	changed := b.Ver == 0 || total != b.Total || limit != b.Limit
	b.Total, b.Limit = total, limit
	b.commit(changed)
	return b.Stock, nil
}

// Recreate implements protocol.Recreator. No ledger in memory is ever lost without its gate.
func (m *Store) Recreate(ctx context.Context, sku string, total, limit int64, _ bool) (protocol.Stock, error) {
	m.mu.Lock()
	b := m.stocks[sku]
	m.mu.Unlock()
	if b != nil {
		return protocol.Stock{}, fmt.Errorf("recreate %q: %w", sku, protocol.ErrExists)
	}
	if _, err := m.SetTotal(ctx, sku, total, max(limit, 0)); err != nil {
		return protocol.Stock{}, err
	}
	return m.SetState(ctx, sku, protocol.Frozen)
}
