package gateway

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"sluice/admin"
	"sluice/config"
	"sluice/limiter"
)

// fleetPart is which part of the limits with scope = "fleet" falls to this instance.
type fleetPart struct {
	mu      sync.Mutex
	limits  config.Limits
	counted limiter.Share // by heartbeats; Of 0 = not yet
	inForce limiter.Share // Of 0 = nothing is known yet: these limits admit nothing
	fixed   bool          // fleet.instances says how many they are
}

// anyOfFleet reports whether instances keep any limit of l together.
func anyOfFleet(l *config.Limits) bool {
	return l.Window.Scope == "fleet" || l.Concurrency.Scope == "fleet" ||
		slices.ContainsFunc(l.Rates, func(r config.Rate) bool { return r.Scope == "fleet" })
}

// use divides the limits of c. Where no instances are counted yet what was in force stays.
func (in *limiters) use(c *config.Config) {
	p := &in.part
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits = c.Limits
	switch n := c.Fleet.Instances; {
	case !anyOfFleet(&c.Limits):
		p.inForce = limiter.Share{Of: 1}
	case n > 0 && n != p.inForce.Of:
		// No instance has a number. Turns taken at random are even on the average.
		p.inForce = limiter.Share{Rank: rand.N(n), Of: n}
	case n == 0 && p.counted.Of > 0:
		p.inForce = p.counted
	}
	p.fixed = c.Fleet.Instances > 0
	in.divide()
}

// SetShare takes which instance this is, and of how many.
func (in *limiters) SetShare(s limiter.Share) {
	p := &in.part
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counted = s; !p.fixed && anyOfFleet(&p.limits) {
		p.inForce = s
		in.divide()
	}
}

// divide puts the part into force. part.mu is held.
func (in *limiters) divide() {
	p := &in.part
	own, whole := p.inForce, limiter.Share{}
	if own.Of == 0 {
		own = limiter.Share{Rank: 1, Of: 1} // no part
	}
	part := func(scope string) limiter.Share {
		if scope == "fleet" {
			return own
		}
		return whole
	}
	in.windows.SetShare(part(p.limits.Window.Scope))
	in.concurrency.setShare(part(p.limits.Concurrency.Scope))
	for _, rate := range in.rates.Fleet() {
		rate.SetInstances(p.inForce.Of)
	}
}

// Instances is by how many a limit of the fleet is divided, as far as is known; at least 1.
func (in *limiters) Instances() int {
	in.part.mu.Lock()
	defer in.part.mu.Unlock()
	return max(1, in.part.counted.Of, in.part.inForce.Of)
}

// CheckPart is the condition that this instance knows its part of the limits of the fleet: without one they admit
// nothing.
func (in *limiters) CheckPart() (string, admin.Health) {
	in.part.mu.Lock()
	defer in.part.mu.Unlock()
	if in.part.inForce.Of == 0 {
		return "not counted yet", admin.Unready
	}
	return fmt.Sprintf("counted: %d", max(in.part.counted.Of, in.part.inForce.Of)), admin.Healthy
}
