package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Sale is a schedule for some SKUs.
type Sale struct {
	Name        string    `toml:"name"` // unique
	SKUs        []string  `toml:"skus"` // at least one
	Starts      time.Time `toml:"starts"`
	Ends        time.Time `toml:"ends"` // after Starts
	BeforeStart string    `toml:"before_start" words:"reject pass"`
	// units by SKU, written before the start where none is yet
	Stock map[string]int `toml:"stock"`
	// of all SKUs together, that a user may have; 0 = no limit
	MaxPerUser int `toml:"max_per_user" unit:"units" range:"0 to most"`
}

func (s *Sale) preset() { *s = Sale{BeforeStart: "reject"} }

func (c *Config) checkSales(r *report) {
	names := make([]string, len(c.Sales))
	for i := range c.Sales {
		names[i] = c.Sales[i].Name
		c.Sales[i].check(r, Element("sale", i))
	}
	r.Unique(names, func(i int) string { return Element("sale", i) + ".name" })
	c.checkOverlaps(r)
	c.checkSaleGates(r)
}

// checkOverlaps wants each SKU to be in one sale at a time.
func (c *Config) checkOverlaps(r *report) {
	for i := range c.Sales {
		for j := range i {
			a, b := &c.Sales[j], &c.Sales[i]
			if !b.Starts.Before(a.Ends) || !a.Starts.Before(b.Ends) {
				continue
			}
			for k, sku := range b.SKUs {
				if slices.Contains(a.SKUs, sku) {
					r.Fail(Element(Element("sale", i)+".skus", k),
						"%q is in %s (%q) too, at the same time; move one of the sales, or drop it here",
						sku, Element("sale", j), a.Name)
				}
			}
		}
	}
}

// checkSaleGates finds what a sale and the routes contradict each other in.
func (c *Config) checkSaleGates(r *report) {
	gates := map[string]bool{}
	for i := range c.Routes {
		gates[c.Routes[i].Gate] = gates[c.Routes[i].Gate] || c.Routes[i].SKU != ""
	}
	ledger := gates["reserve"]
	keys := c.Stock.Source == "redis" && c.Stock.Layout.Type != "script" && (gates["check"] || gates["reserve"])
	for i := range c.Sales {
		s, at := &c.Sales[i], Element("sale", i)
		if !gates["limit"] && !gates["check"] && !gates["reserve"] {
			r.Fail(at, "no route with a limit knows what is bought; write sku into a [[route]] with gate \"limit\", \"check\" "+
				"or \"reserve\"")
		}
		if s.BeforeStart == "pass" && gates["reserve"] && !gates["limit"] && !gates["check"] {
			r.Fail(at+".before_start", "\"pass\" lets early requests go on to the shop, but routes that reserve never do; "+
				"write \"reject\"")
		}
		if len(s.Stock) > 0 && !ledger && !keys {
			r.Fail(at+".stock", "is written into ledgers and the keys of stock.layout, but no route reads either that can be "+
				"written; drop it, and let the shop write its own keys")
		}
		s.checkMaxPerUser(r, at, ledger, c.Queues())
		if keys && c.Stock.Layout.Type == "list" && (!ledger || c.Stock.Reserve.WriteBack) {
			s.checkLists(r, at)
		}
	}
}

// mostCounted is how many SKUs a sale may have whose units are counted together: each order asks about all of them.
const mostCounted = 64

func (s *Sale) checkMaxPerUser(r *report, at string, ledger, queue bool) {
	switch at += ".max_per_user"; {
	case s.MaxPerUser <= 0:
	case !ledger:
		r.Fail(at, "counts what ledgers have of a user, but no route keeps a ledger; write gate = \"reserve\" into the "+
			"[[route]] of orders")
	case queue:
		r.Fail(at, "is counted when units are reserved, but an order with delivery = \"queue\" may be on its way to the "+
			"shop by then; write delivery = \"direct\", or drop max_per_user")
	case len(s.SKUs) > mostCounted:
		r.Fail(at, "counts %d SKUs for each order; at most %d are possible: make two sales, or drop max_per_user",
			len(s.SKUs), mostCounted)
	}
}

// mostListed is how many units a sale may push into a list: one push must not hold Redis up.
const mostListed = 100_000

func (s *Sale) checkLists(r *report, at string) {
	for _, sku := range slices.Sorted(maps.Keys(s.Stock)) {
		if n := s.Stock[sku]; n > mostListed {
			r.Fail(joinKey(at+".stock", sku), "%d units are too many for a list, which gets %d at most; drop it, and let "+
				"the shop fill the list", n, mostListed)
		}
	}
}

func (s *Sale) check(r *report, at string) {
	r.Filled(at+".name", s.Name)
	if len(s.SKUs) == 0 {
		r.Fail(at+".skus", "is missing; write what is sold, like [\"1001\"]")
	}
	for i, sku := range s.SKUs {
		if sku == "" || strings.ContainsAny(sku, "{} ") {
			r.Fail(Element(at+".skus", i), "%q is not a SKU; write one without braces and blanks", sku)
		}
	}
	r.Unique(s.SKUs, func(i int) string { return Element(at+".skus", i) })
	s.checkTimes(r, at)
	for _, sku := range slices.Sorted(maps.Keys(s.Stock)) {
		key := joinKey(at+".stock", sku)
		if !slices.Contains(s.SKUs, sku) {
			r.Fail(key, "%q is not in skus; add it there, or drop it here", sku)
		}
		between(r, key, s.Stock[sku], 0, most)
	}
}

// The years that a sale may be in.
const firstYear, lastYear = 2000, 2199

func (s *Sale) checkTimes(r *report, at string) {
	for _, t := range []struct {
		key  string
		time time.Time
	}{{".starts", s.Starts}, {".ends", s.Ends}} {
		if t.time.IsZero() {
			r.Fail(at+t.key, "is missing; write it like 2026-11-11T00:00:00+08:00")
			return
		}
		// nanoseconds in 64 bits wrap around: what is far away would be over, or on
		if y := t.time.Year(); y < firstYear || y > lastYear {
			r.Fail(at+t.key, "%s is not a time of a sale; write a year from %d to %d", t.time.Format(time.RFC3339), firstYear,
				lastYear)
			return
		}
	}
	if !s.Ends.After(s.Starts) {
		r.Fail(at+".ends", "%s is not after starts; write a later time", s.Ends.Format(time.RFC3339))
	}
}
