package config

import "slices"

// HasGate reports whether any route has this gate.
func (c *Config) HasGate(gate string) bool {
	return slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Gate == gate })
}

// UsesLedger reports whether routes reserve units in Sluice's own ledger.
func (c *Config) UsesLedger() bool { return c.HasGate("reserve") && !c.UsesScript() }

// UsesScript reports whether routes reserve units by the shop's own script, and not in the ledger.
func (c *Config) UsesScript() bool { return c.HasGate("reserve") && c.Stock.Script.Used() }

// ReadsStock reports whether any route asks for the stock of its SKU: gate "check" or "reserve".
func (c *Config) ReadsStock() bool { return c.HasGate("check") || c.HasGate("reserve") }

// KeepsPages reports whether any route keeps responses of the upstream.
func (c *Config) KeepsPages() bool {
	return slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Cache > 0 })
}

// SKUsOnSale lists the SKUs that sales name, in the order of the file; a SKU of two sales comes twice.
func (c *Config) SKUsOnSale() (skus []string) {
	for i := range c.Sales {
		skus = append(skus, c.Sales[i].SKUs...)
	}
	return skus
}
