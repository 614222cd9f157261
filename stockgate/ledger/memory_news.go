package ledger

import (
	"context"
	"sync/atomic"
)

// ear is somebody who listens to a Memory.
type ear struct {
	news   chan told
	missed atomic.Bool // a piece of news found no room
}

type told struct {
	sku  string
	hint Hint
}

const earful = 1024 // news that wait for one listener

// Listen calls hear with each piece of news until ctx ends, and missed when it begins and whenever some were lost.
// Both are called from this goroutine.
func (m *Memory) Listen(ctx context.Context, hear func(sku string, h Hint), missed func()) {
	e := &ear{news: make(chan told, earful)}
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
		case n := <-e.news:
			hear(n.sku, n.hint)
		}
	}
}

// listen lets e begin or end.
func (m *Memory) listen(e *ear, begin bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if begin {
		m.ears[e] = true
	} else {
		delete(m.ears, e)
	}
}

// tell passes news on, and waits for nobody. mu is held.
func (m *Memory) tell(sku string, h Hint) {
	for e := range m.ears {
		select {
		case e.news <- told{sku, h}:
		default:
			e.missed.Store(true)
		}
	}
}
