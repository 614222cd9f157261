package stockgate

import (
	"sync/atomic"

	"sluice/proxy/reject"
)

// fallbacks counts what on_error decided. It is written by Enter alone, which stands behind the limits: the
// crowd does not reach it.
type fallbacks struct {
	_       [64]byte
	allowed atomic.Uint64
	_       [56]byte
	refused atomic.Uint64
	_       [56]byte
}

// fallback decides for a request whose stock cannot be known. e may be nil.
func (g *Gate) fallback(e *entry) reject.Reason {
	if !g.allow {
		g.fallbacks.refused.Add(1)
		return reject.StockError
	}
	g.fallbacks.allowed.Add(1)
	if e != nil {
		e.admit()
	}
	return reject.Admitted
}
