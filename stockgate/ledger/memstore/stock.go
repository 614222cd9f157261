package memstore

import (
	"cmp"
	"slices"

	"sluice/stockgate/ledger/protocol"
)

// memoryStock is the ledger of one SKU in memory: the same five keys, but for the stream.
type memoryStock struct {
	protocol.Stock

	records map[string]protocol.Record // by serial; a refunded one is refunded here and released outside
	units   map[string]int64           // by user, held + sold
	due     map[string]int64           // by serial, Unix ms: when Sweep looks at a hold or forgets a tombstone
	added   []addition                 // of the last ids, the newest last
	before  protocol.StockVersion      // as of the last change
	over    overruling
	notify  func(protocol.StockVersion) // takes news
	queue   queue
}

func (m *Store) newBook(sku string) *memoryStock {
	return &memoryStock{
		Stock:   protocol.Stock{StockVersion: protocol.StockVersion{Epoch: 1, State: protocol.On}},
		records: make(map[string]protocol.Record),
		units:   make(map[string]int64),
		due:     make(map[string]int64),
		notify:  func(h protocol.StockVersion) { m.notify(sku, h) },
	}
}

// commit ends a call, and makes it the next version when it changed something.
func (b *memoryStock) commit(changed bool) protocol.StockVersion {
	if b == nil {
		return protocol.StockVersion{}
	}
	if changed {
		b.Ver++
		b.Free = b.Total - b.Held - b.Sold
		if b.StockVersion.Notable(b.before) {
			b.notify(b.StockVersion)
		}
		b.before = b.StockVersion
	}
	return b.StockVersion
}

// reserve is one item of Reserve. The serial is looked up first: a retry of a winner must never hear "sold out".
func (b *memoryStock) reserve(i protocol.Item, now, deadline int64) protocol.Code {
	if r, ok := b.records[i.Serial]; ok {
		return protocol.Replay(r, i)
	}
	units := b.units[i.User]
	switch {
	case b.At(now) != protocol.On:
		return protocol.NotOnSale
	case i.Quantity > b.Total-b.Held-b.Sold:
		return protocol.SoldOut
	case b.Limit > 0 && i.User != "" && units+i.Quantity > b.Limit:
		return protocol.UserLimit
	}
	b.Held += i.Quantity
	b.units[i.User] = units + i.Quantity
	b.records[i.Serial] = protocol.Record{Serial: i.Serial, User: i.User, Quantity: i.Quantity, Cart: i.Cart,
		Status: protocol.StatusHeld, Deadline: deadline}
	b.due[i.Serial] = deadline
	if i.Request != "" {
		b.enqueue(i)
	}
	return protocol.Held
}

// finish is one item of Finish.
func (b *memoryStock) finish(op protocol.Op, i protocol.Item, keep int64) protocol.Done {
	r := b.records[i.Serial] // its status is none when there is none
	to, answer := protocol.Next(op, r.Status)
	if to == protocol.StatusNone {
		return answer
	}
	b.subtract(r)
	r.Serial = i.Serial
	if op == protocol.Adopt || op != protocol.Confirm && b.State == protocol.Frozen {
		r.Cart = protocol.AnyCart // a word from outside, as in finish.lua
	}
	if op == protocol.Adopt && r.Status != protocol.StatusHeld {
		r.User, r.Quantity = i.User, i.Quantity
	}
	r.Status, r.Deadline = to, keep
	if to == protocol.StatusSold {
		r.Deadline = 0
		b.Sold += r.Quantity
		b.units[r.User] += r.Quantity
		delete(b.due, r.Serial)
	} else {
		b.due[r.Serial] = keep
	}
	b.records[r.Serial] = r
	if op == protocol.Adopt && b.Held+b.Sold > b.Total {
		return protocol.Oversold
	}
	return answer
}

// subtract takes a record's units out of the books, where it has any.
func (b *memoryStock) subtract(r protocol.Record) {
	switch r.Status {
	case protocol.StatusHeld:
		b.Held -= r.Quantity
	case protocol.StatusSold:
		b.Sold -= r.Quantity
	default:
		return
	}
	if b.units[r.User] -= r.Quantity; b.units[r.User] == 0 {
		delete(b.units, r.User)
	}
}

// sweep looks at what is due, the oldest first.
func (b *memoryStock) sweep(now, lease int64, limit int) []protocol.Record {
	var serials []string
	for serial, at := range b.due {
		if at <= now {
			serials = append(serials, serial)
		}
	}
	slices.SortFunc(serials, func(x, y string) int {
		return cmp.Or(cmp.Compare(b.due[x], b.due[y]), cmp.Compare(x, y))
	})
	var holds []protocol.Record
	for _, serial := range serials[:min(len(serials), limit+protocol.MaxForgotten)] {
		switch r := b.records[serial]; {
		case r.Status != protocol.StatusHeld:
			delete(b.records, serial)
			delete(b.due, serial)
		case len(holds) < limit:
			b.due[serial] = lease
			holds = append(holds, r)
		}
	}
	return holds
}
