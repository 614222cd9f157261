package config

import "strings"

// Fleet is what the instances in front of one shop have in common. It matters where limits.window.scope is "fleet",
// and where units that came back to the shop's Redis are tried.
type Fleet struct {
	Name      string `toml:"name"`      // of letters, digits and . _ -
	Instances int    `toml:"instances"` // 0 = count heartbeats in Redis; at most 1048576
}

func (c *Config) checkFleet(r *report) {
	if r.filled("fleet.name", c.Fleet.Name) && strings.ContainsFunc(c.Fleet.Name, notLabel) {
		r.fail("fleet.name", "%q stands in a key of Redis; write letters, digits and . _ -", c.Fleet.Name)
	}
	between(r, "fleet.instances", c.Fleet.Instances, 0, 1<<20)
	if c.Limits.Window.Scope == "fleet" && c.Fleet.Instances == 0 && c.Stock.Source == "memory" {
		r.fail("limits.window.scope", "\"fleet\" counts the instances in Redis, but stock.source is \"memory\"; write source = \"redis\", or fleet.instances")
	}
}
