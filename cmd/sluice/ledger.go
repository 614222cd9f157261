package main

import (
	"time"

	"sluice/config"
	"sluice/stockgate/ledger"
)

const (
	keepEvents   = 100_000        // changes of a SKU that its stream remembers
	keepReleased = 24 * time.Hour // longer than a sale, and than any message is late
)

// reserves tells whether any route takes units from the ledger.
func reserves(c *config.Config) bool { return hasGate(c, "reserve") && !drives(c) }

func hasGate(c *config.Config, gate string) bool {
	for _, r := range c.Routes {
		if r.Gate == gate {
			return true
		}
	}
	return false
}

// openLedger connects to the configured Redis, for our own keys.
func openLedger(c *config.Config) (*ledger.Redis, error) {
	r, err := ledger.NewRedis(ledger.RedisOptions{Options: linkOptions(c), Events: keepEvents})
	if err != nil {
		return nil, c.Errorf("stock.redis", "%v", err)
	}
	return r, nil
}

// ledgersOf is store as the API wants it. desk may be nil, and return nil as long as there is none.
func ledgersOf(c *config.Config, store ledger.Store, desk func() *ledger.Desk) ledgers {
	if desk == nil {
		desk = func() *ledger.Desk { return nil }
	}
	return ledgers{store: store, perUser: int64(c.Stock.Reserve.PerUser), keep: keepReleased, desk: desk}
}
