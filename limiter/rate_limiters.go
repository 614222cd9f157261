package limiter

import "sync"

// RateLimiters are the keyed rates in force. A change of configuration keeps what each key has used of a rate that goes
// on to count the same keys (by its name and Of) in as much memory: no key gets a new burst by it.
//
// It is safe for concurrent use.
type RateLimiters struct {
	now     func() int64
	mu      sync.Mutex
	inForce []*RateLimiter
}

// NewRateLimiters returns RateLimiters with none in force. now is the callers' clock: what metrics show is of that
// instant.
func NewRateLimiters(now func() int64) *RateLimiters { return &RateLimiters{now: now} }

// Prepare makes the rates of specs, in their order, and puts none of them into force. Where rate or burst differ from
// those in force, what is taken from now until Use is not known to the new one.
func (s *RateLimiters) Prepare(specs []RateSpec) []*RateLimiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	rates := make([]*RateLimiter, len(specs))
	for i, spec := range specs {
		rates[i] = s.prepare(spec)
	}
	return rates
}

func (s *RateLimiters) prepare(spec RateSpec) (r *RateLimiter) {
	near := &nearCounts{}
	defer func() { r.near = near }() // what was counted goes on, also where a rate starts anew
	for _, old := range s.inForce {
		if old.spec.Name == spec.Name {
			near = old.near
		}
		if old.spec.Name != spec.Name || old.spec.Of != spec.Of || old.keys != spec.MaxKeys {
			continue
		}
		r = newRate(spec, old.cells)
		if r.perToken != old.perToken || r.depth != old.depth || r.maxDelay < old.maxDelay {
			r.cells = old.scaled(s.now(), old, r)
		}
		if old.fleet != nil && r.fleet != nil {
			r.fleet = old.fleet.follow(s.now(), r)
		}
		return r
	}
	return NewRateLimiter(spec)
}

// Use puts prepared rates into force, in place of those before.
func (s *RateLimiters) Use(rates []*RateLimiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inForce = rates
	for _, r := range rates {
		if r.fleet != nil {
			r.fleet.rate.Store(r)
		}
	}
}

// Named is the rate in force of this name; nil = there is none.
func (s *RateLimiters) Named(name string) *RateLimiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.inForce {
		if r.spec.Name == name {
			return r
		}
	}
	return nil
}

// Fleet are the rates that instances share, by their names.
func (s *RateLimiters) Fleet() map[string]*FleetShare {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := map[string]*FleetShare{}
	for _, r := range s.inForce {
		if r.fleet != nil {
			parts[r.spec.Name] = r.fleet
		}
	}
	return parts
}
