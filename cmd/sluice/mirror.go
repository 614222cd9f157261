package main

import (
	"context"

	"sluice/stockgate/ledger"
)

// mirror writes what the ledgers have free into the shop's own keys; nil when nobody asked for that.
func (g *gate) mirror() ledger.Mirror {
	if !g.config.Stock.Reserve.Mirror || g.redis == nil {
		return nil
	}
	return func(ctx context.Context, sku string, h ledger.Hint) (bool, error) {
		return g.redis.Mirror(ctx, sku, h.Free, h.Epoch, h.Ver)
	}
}
