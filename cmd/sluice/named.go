package main

import (
	"slices"

	"sluice/config"
)

// namedSKUs are those that metrics count by name: of the sales in the file, the first by name, at most metrics.max_skus.
// A SKU that only a request names has no label.
func namedSKUs(c *config.Config) (named []string) {
	for i := range c.Sales {
		named = append(named, c.Sales[i].SKUs...)
	}
	slices.Sort(named)
	named = slices.Compact(named)
	return named[:min(len(named), c.Metrics.MaxSKUs)]
}
