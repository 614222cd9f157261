package stockgate

import (
	"sluice/proxy"
)

// StockStatus tells what everybody may know of sku at now: its phase, and the units that are free, below 0 where nobody can
// tell. Whoever asks keeps the SKU among those that are read, like a buyer; one that nobody asked for lately is looked at
// once for all who do, as Enter does. What is not known is not waited for while the source is away.
func (g *Gate) StockStatus(now int64, sku []byte) (phase proxy.Phase, free int64) {
	e := g.table.lookUp(sku)
	if e == nil {
		if len(sku) > longestSKU {
			return proxy.Unknown, -1
		}
		if e = g.track(now, sku); e == nil {
			return proxy.Unknown, -1
		}
	}
	switch g.verdict(now, e) {
	case onSale:
		return proxy.InStock, e.free.Load()
	case soldOut:
		return proxy.SoldOut, 0
	case notOnSale:
		return proxy.Paused, -1
	}
	return proxy.Unknown, -1
}
