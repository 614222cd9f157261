package memstore

import (
	"context"
	"sync/atomic"

	"sluice/stockgate/ledger/protocol"
)

// subscriber is a goroutine that listens to a Store.
type subscriber struct {
	notifications chan notification
	missed        atomic.Bool // a piece of news found no room
}

type notification struct {
	sku  string
	hint protocol.StockVersion
}

const bufferSize = 1024 // news that wait for one listener

// Listen calls hear with each piece of news until ctx ends, and missed when it begins and whenever some were lost.
// Both are called from this goroutine.
func (m *Store) Listen(ctx context.Context, hear func(sku string, h protocol.StockVersion), missed func()) {
	e := &subscriber{notifications: make(chan notification, bufferSize)}
	e.missed.Store(true)
	m.listen(e, true)
	defer m.listen(e, false)
	for {
		if e.missed.Swap(false) {
			missed()
		}
		select {
		case <-ctx.Done():
			return
		case n := <-e.notifications:
			hear(n.sku, n.hint)
		}
	}
}

// listen lets e begin or end.
func (m *Store) listen(e *subscriber, begin bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if begin {
		m.subscribers[e] = true
	} else {
		delete(m.subscribers, e)
	}
}

// notify passes news on, and does not wait for subscribers. mu is held.
func (m *Store) notify(sku string, h protocol.StockVersion) {
	for e := range m.subscribers {
		select {
		case e.notifications <- notification{sku, h}:
		default:
			e.missed.Store(true)
		}
	}
}
