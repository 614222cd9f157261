package settle

import (
	"context"
	"errors"
	"fmt"
	"math"

	"sluice/stockgate/ledger/memstore"
	"sluice/stockgate/ledger/protocol"
)

// Source is where a settler reads ledgers and their changes: the Stream of a Redis, or Memory.
type Source interface {
	SKUs(ctx context.Context) (all []string, beyond int64, err error)
	Ledgers(ctx context.Context, skus []string) ([]Ledger, error)
	Entries(ctx context.Context, sku string, from Position, count int) ([]Entry, error)
	Records(ctx context.Context, sku string) (map[string]Record, error)
	Locate(ctx context.Context, sku string, records map[string]Record) (oldest int64, err error)
	Pin(ctx context.Context, sku string, at Position) error

	mark(ctx context.Context, sku, before, after string) error
}

// Memory reads ledgers in the memory of this process that keep their changes. They are those of the demonstration: they
// have one home, and nothing of them is ever trimmed.
type Memory struct{ Store *memstore.Store }

// SKUs implements Source.
func (m Memory) SKUs(ctx context.Context) (all []string, beyond int64, err error) {
	all, err = m.Store.Names(ctx, "")
	return all, 0, err
}

// Ledgers implements Source.
func (m Memory) Ledgers(ctx context.Context, skus []string) ([]Ledger, error) {
	all := make([]Ledger, len(skus))
	for i, sku := range skus {
		s, ok, err := m.Store.ReadStock(ctx, sku)
		if err != nil {
			return nil, err
		}
		if ok {
			all[i] = Ledger{Position: Position{s.Epoch, s.Ver}, Numbers: numbersIn(s), Born: 1, Limit: s.Limit}
		}
	}
	return all, nil
}

func numbersIn(s protocol.Stock) Numbers {
	return Numbers{Total: s.Total, Held: s.Held, Sold: s.Sold, State: string(s.State)}
}

// Entries implements Source.
func (m Memory) Entries(_ context.Context, sku string, from Position, count int) ([]Entry, error) {
	changes := m.Store.Changes(sku, from.Ver, count)
	entries := make([]Entry, len(changes))
	for i, c := range changes {
		e := &entries[i]
		e.Position, e.Numbers, e.At = Position{c.Epoch, c.Ver}, numbersIn(c.Stock), c.At
		e.fields = numbersOf(e.Numbers, e.At)
		for _, one := range c.Records {
			r := Record{Position: e.Position, Serial: one.Serial, User: one.User, Quantity: one.Quantity,
				Status: one.Status, At: e.At}
			e.Records = append(e.Records, r)
			e.fields = append(e.fields, "r:"+r.Serial, r.text())
		}
	}
	return entries, nil
}

// Records implements Source. Each record has the position of its last change.
func (m Memory) Records(ctx context.Context, sku string) (map[string]Record, error) {
	entries, err := m.Entries(ctx, sku, Position{}, math.MaxInt)
	all := make(map[string]Record)
	for _, e := range entries {
		for _, r := range e.Records {
			all[r.Serial] = r
		}
	}
	return all, err
}

// Locate implements Source: Records has done it, and the first change is there.
func (m Memory) Locate(context.Context, string, map[string]Record) (oldest int64, err error) {
	return 1, nil
}

// Pin implements Source.
func (m Memory) Pin(context.Context, string, Position) error { return nil }

func (m Memory) mark(_ context.Context, sku, _, _ string) error {
	return fmt.Errorf("mark the home of %q: %w", sku, errors.ErrUnsupported)
}
