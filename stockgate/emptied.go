package stockgate

import (
	"sync"

	"sluice/stockgate/layout"
)

// mostLists bounds the memory of emptiedLists: the lists that it tells from such that never were.
const mostLists = 100_000

// emptiedLists remembers which lists have held a unit, since Redis forgets a list with its last one. It lasts as long
// as the layout is read, and is safe for concurrent use. Only the shop can make it grow: clients invent no lists.
type emptiedLists struct {
	mu   sync.Mutex
	of   *layout.Layout
	held map[string]struct{}
}

// markEmptied notes the lists among the readings that hold a unit, and turns those that held one into sold out.
func (m *emptiedLists) markEmptied(l *layout.Layout, skus []string, out []layout.Reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of != l {
		m.of, m.held = l, nil
	}
	for i, sku := range skus {
		_, held := m.held[sku]
		switch {
		case out[i].Fault != nil:
		case out[i].Left > 0 && !held && len(m.held) < mostLists:
			if m.held == nil {
				m.held = make(map[string]struct{})
			}
			m.held[sku] = struct{}{}
		case !out[i].Exists && held:
			out[i] = l.Emptied(out[i])
		}
	}
}
