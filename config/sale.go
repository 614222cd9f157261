package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Sale is a schedule for some SKUs.
type Sale struct {
	Name   string         `toml:"name"` // unique
	SKUs   []string       `toml:"skus"` // at least one
	Starts time.Time      `toml:"starts"`
	Ends   time.Time      `toml:"ends"`   // after Starts
	Before string         `toml:"before"` // "refuse" or "pass"
	Stock  map[string]int `toml:"stock"`  // units by SKU, written at the start where none is yet
}

func (s *Sale) preset() { *s = Sale{Before: "refuse"} }

func (c *Config) checkSales(r *report) {
	names := make([]string, len(c.Sales))
	for i := range c.Sales {
		names[i] = c.Sales[i].Name
		c.Sales[i].check(r, element("sale", i))
	}
	r.unique(names, func(i int) string { return element("sale", i) + ".name" })
}

func (s *Sale) check(r *report, at string) {
	r.filled(at+".name", s.Name)
	if len(s.SKUs) == 0 {
		r.fail(at+".skus", "is missing; write what is sold, like [\"1001\"]")
	}
	for i, sku := range s.SKUs {
		if sku == "" || strings.ContainsAny(sku, "{} ") {
			r.fail(element(at+".skus", i), "%q is not a SKU; write one without braces and blanks", sku)
		}
	}
	r.unique(s.SKUs, func(i int) string { return element(at+".skus", i) })
	s.checkTimes(r, at)
	r.oneOf(at+".before", s.Before, "refuse", "pass")
	for _, sku := range slices.Sorted(maps.Keys(s.Stock)) {
		key := join(at+".stock", sku)
		if !slices.Contains(s.SKUs, sku) {
			r.fail(key, "%q is not in skus; add it there, or drop it here", sku)
		}
		between(r, key, s.Stock[sku], 0, most)
	}
}

func (s *Sale) checkTimes(r *report, at string) {
	for _, t := range []struct {
		key  string
		time time.Time
	}{{".starts", s.Starts}, {".ends", s.Ends}} {
		if t.time.IsZero() {
			r.fail(at+t.key, "is missing; write it like 2026-11-11T00:00:00+08:00")
			return
		}
	}
	if !s.Ends.After(s.Starts) {
		r.fail(at+".ends", "%s is not after starts; write a later time", s.Ends.Format(time.RFC3339))
	}
}
