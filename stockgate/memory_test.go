package stockgate

import (
	"context"
	"fmt"
	"sync"

	"sluice/stockgate/layout"
)

// Memory is a Source that tests fill. It is safe for concurrent use.
type Memory struct {
	mu   sync.RWMutex
	left map[string]int64
}

// NewMemory returns a Memory without any stock.
func NewMemory() *Memory { return &Memory{left: make(map[string]int64)} }

// Read reads the stock of skus. It never fails.
func (m *Memory) Read(_ context.Context, skus []string, out []layout.Reading) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for i, sku := range skus {
		out[i] = m.reading(sku)
	}
	return nil
}

// ReadUncached is Read.
func (m *Memory) ReadUncached(ctx context.Context, skus []string, out []layout.Reading) error {
	return m.Read(ctx, skus, out)
}

func (m *Memory) reading(sku string) layout.Reading {
	n, ok := m.left[sku]
	return layout.Reading{Left: n, Free: n, Exists: ok, OnSale: true}
}

// Ping does nothing: memory is always there.
func (m *Memory) Ping(context.Context) error { return nil }

// Set makes n units of sku available, 0 or more, whatever there was before.
func (m *Memory) Set(_ context.Context, sku string, n int64) error {
	if n < 0 {
		return fmt.Errorf("set %q: a stock of %d is negative", sku, n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left[sku] = n
	return nil
}

// Add changes the stock of sku by delta, and returns what is left then. A SKU that was never set is ErrUnknownSKU.
func (m *Memory) Add(_ context.Context, sku string, delta int64) (left int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.left[sku]
	if !ok {
		return 0, fmt.Errorf("add to %q: %w", sku, ErrUnknownSKU)
	}
	m.left[sku] = n + delta
	return n + delta, nil
}

// Sell sells n units of sku, all of them or none. It reports whether it did.
func (m *Memory) Sell(sku string, n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < 0 || m.left[sku] < n {
		return false
	}
	m.left[sku] -= n
	return true
}
