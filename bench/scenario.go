package main

import (
	"math"
	"slices"
)

// scenario is one kind of request, and who can answer it.
type scenario struct {
	name       string
	title      string // for the table
	method     string
	path       string
	unique     bool     // each request comes from another user
	rejected   bool     // every answer is a rejection, but for the first few
	mixed      bool     // some are admitted and some rejected
	redis      bool     // Redis takes part, and is measured
	oneAPerson bool     // the gate sells one unit a person
	units      int      // of what is sold; 0 = as many as anybody asks for
	gates      []string // who can do this
}

func (s scenario) label() string { return s.name }

// plenty is a stock that no run sells out.
const plenty = 1_000_000_000

// scenarios are all of them, in the order of the table and of a round: what is divided by another stands behind it,
// since the machine changes its speed.
func scenarios() []scenario {
	return []scenario{
		{name: "pass", title: "forwarded, no gate", method: "GET", path: "/item/1001",
			gates: []string{"nginx", "haproxy", "sluice", "naive"}},
		{name: "post", title: "what check forwards, no gate", method: "POST", path: "/plain/open/order",
			gates: []string{"sluice"}},
		{name: "check", title: "admitted while there is stock", method: "POST", path: "/check/open/order", redis: true,
			gates: []string{"nginx", "sluice"}},
		{name: "limited", title: "429 by a rate of the client", method: "GET", path: "/limited", rejected: true,
			gates: []string{"nginx", "haproxy", "sluice", "bare"}},
		{name: "gone", title: "sold out", method: "POST", path: "/reserve/gone/order", rejected: true, redis: true,
			gates: []string{"nginx", "sluice", "bare"}},
		{name: "reserve", title: "a unit taken, forwarded, settled", method: "POST", path: "/reserve/open/order",
			unique: true, redis: true,
			gates: []string{"nginx", "sluice"}},
		{name: "reserve-once", title: "the same, one a person", method: "POST", path: "/reserve/open/order", unique: true,
			redis: true, oneAPerson: true,
			gates: []string{"nginx", "sluice"}},
		{name: "sale", title: "a crowd over 10,000 units, one a person", method: "POST", path: "/reserve/sale/order",
			unique: true, mixed: true,
			redis: true, oneAPerson: true, units: 10_000, gates: []string{"nginx", "sluice"}},
	}
}

// scenarioOf is the one of that name.
func scenarioOf(name string) scenario {
	all := scenarios()
	return all[slices.IndexFunc(all, func(s scenario) bool { return s.name == name })]
}

// rivals are the alternatives that one would use instead of Sluice; bare fasthttp is no gate.
func rivals() []string { return []string{"nginx", "haproxy"} }

// ratios divides one cell by another round by round, so that what slows the machine for a while slows both.
func (r results) ratios(a, b cell, m measure) []float64 {
	of, by := r.values(a, m), r.values(b, m)
	var all []float64
	for i := range min(len(of), len(by)) {
		if by[i] != 0 {
			all = append(all, of[i]/by[i])
		}
	}
	return all
}

// best is the rival with the best median of a measure; "" where none was measured.
func (r results) best(scenario string, connections int, m measure) string {
	name, least := "", math.Inf(1)
	for _, rival := range rivals() {
		v := middle(r.values(cell{scenario, rival, connections}, m))
		if m == requests {
			v = -v
		}
		if v < least { // false for NaN
			name, least = rival, v
		}
	}
	return name
}

// toBest are the ratios of a cell to the best rival of its scenario.
func (r results) toBest(c cell, m measure) []float64 {
	best := r.best(c.scenario, c.connections, m)
	if best == "" {
		return nil
	}
	return r.ratios(c, cell{c.scenario, best, c.connections}, m)
}
