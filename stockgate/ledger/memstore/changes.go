package memstore

import (
	"slices"
	"time"

	"sluice/stockgate/ledger/protocol"
)

// Change is one version of a ledger, as an entry of a stream in Redis tells it.
type Change struct {
	protocol.Stock                   // after the change
	At             int64             // Unix ms
	Records        []protocol.Record // as the change has left them
}

// KeepChanges keeps every change of the ledgers that are made from now on: they have no end but that of the process.
func (m *Store) KeepChanges() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keeps = true
}

// Changes returns at most limit changes of a ledger from a version on, the oldest first; none if they are not kept.
func (m *Store) Changes(sku string, from int64, limit int) []Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.stocks[sku]
	if b == nil {
		return nil
	}
	rest := b.changes[min(max(from-1, 0), int64(len(b.changes))):] // the first one has version 1
	return slices.Clone(rest[:min(limit, len(rest))])
}

// write sets the record of an order.
func (b *memoryStock) write(r protocol.Record) {
	b.records[r.Serial] = r
	if b.keeps {
		b.written = append(b.written, r)
	}
}

// keep ends a change.
func (b *memoryStock) keep() {
	if b.keeps {
		b.changes = append(b.changes, Change{b.Stock, time.Now().UnixMilli(), b.written})
		b.written = nil
	}
}
