package memstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"sluice/stockgate/ledger/protocol"
)

// Inspect shows all at once, whatever is asked for.
func (m *Store) Inspect(ctx context.Context, sku string, _ protocol.Part, _ string, _ int) (protocol.Page, error) {
	if err := errors.Join(ctx.Err(), protocol.CheckSKU(sku)); err != nil {
		return protocol.Page{}, fmt.Errorf("inspect %q: %w", sku, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.stocks[sku]
	if b == nil {
		return protocol.Page{Next: protocol.FirstPage}, nil
	}
	return b.inspect(), nil
}

// UnitsOf implements protocol.Counter.
func (m *Store) UnitsOf(_ context.Context, skus, users []string) []protocol.Owned {
	owned := make([]protocol.Owned, len(skus))
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, sku := range skus {
		b := m.stocks[sku]
		if b == nil {
			continue
		}
		owned[i].State = b.State
		for _, user := range users {
			owned[i].Units = append(owned[i].Units, b.units[user])
		}
	}
	return owned
}

// InspectAll shows all of each.
func (m *Store) InspectAll(ctx context.Context, skus []string) []protocol.Inspection {
	found := make([]protocol.Inspection, len(skus))
	for i, sku := range skus {
		found[i].Page, found[i].Err = m.Inspect(ctx, sku, protocol.AllParts, protocol.FirstPage, 0)
	}
	return found
}

func (b *memoryStock) inspect() protocol.Page {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	p := protocol.Page{Next: protocol.FirstPage, Entries: int64(len(b.records) + len(b.units) + len(b.due))}
	p.Numbers = protocol.Numbers{Total: text(b.Total), Held: text(b.Held), Sold: text(b.Sold), State: string(b.State),
		Epoch: text(b.Epoch), Limit: text(b.Limit), Ver: text(b.Ver)}
	for serial, r := range b.records {
		units := protocol.UnitsText(r.Quantity, r.Cart)
		p.Records = append(p.Records, serial, fmt.Sprintf("%c|%s|%d|%s", r.Status, units, r.Deadline, r.User))
	}
	for user, n := range b.units {
		p.Users = append(p.Users, user, text(n))
	}
	for serial := range b.due {
		p.Due = append(p.Due, serial)
	}
	return p
}
