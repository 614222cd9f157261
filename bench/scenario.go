package main

import "slices"

// scenario is one kind of request, and who can answer it.
type scenario struct {
	name       string
	title      string // for the table
	method     string
	path       string
	unique     bool     // each request comes from another user
	refused    bool     // every answer is a refusal, but for the first few
	mixed      bool     // some are admitted and some refused
	redis      bool     // Redis takes part, and is measured
	oneAPerson bool     // the gate sells one unit a person
	units      int      // of what is sold; 0 = as many as anybody asks for
	gates      []string // who can do this
}

func (s scenario) label() string { return s.name }

// plenty is a stock that no run sells out.
const plenty = 1_000_000_000

// scenarios are all of them, in the order of the table and of a round: what is divided by another stands behind it, since the
// machine changes its speed.
func scenarios() []scenario {
	return []scenario{
		{name: "pass", title: "forwarded, no gate", method: "GET", path: "/item/1001",
			gates: []string{"nginx", "haproxy", "sluice", "naive"}},
		{name: "post", title: "what check forwards, no gate", method: "POST", path: "/plain/open/order",
			gates: []string{"sluice"}},
		{name: "check", title: "admitted while there is stock", method: "POST", path: "/check/open/order", redis: true,
			gates: []string{"nginx", "sluice"}},
		{name: "limited", title: "429 by a rate of the client", method: "GET", path: "/limited", refused: true,
			gates: []string{"nginx", "haproxy", "sluice", "bare"}},
		{name: "gone", title: "sold out", method: "POST", path: "/reserve/gone/order", refused: true, redis: true,
			gates: []string{"nginx", "sluice", "bare"}},
		{name: "reserve", title: "a unit taken, forwarded, settled", method: "POST", path: "/reserve/open/order", unique: true, redis: true,
			gates: []string{"nginx", "sluice"}},
		{name: "reserve-once", title: "the same, one a person", method: "POST", path: "/reserve/open/order", unique: true, redis: true, oneAPerson: true,
			gates: []string{"nginx", "sluice"}},
		{name: "sale", title: "a crowd over 10,000 units, one a person", method: "POST", path: "/reserve/sale/order", unique: true, mixed: true,
			redis: true, oneAPerson: true, units: 10_000, gates: []string{"nginx", "sluice"}},
	}
}

// scenarioOf is the one of that name.
func scenarioOf(name string) scenario {
	all := scenarios()
	return all[slices.IndexFunc(all, func(s scenario) bool { return s.name == name })]
}
