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

// Prepare makes the rates of specs, in their order, and puts none of them into force.
func (s *RateLimiters) Prepare(specs []RateSpec) []*RateLimiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	rates := make([]*RateLimiter, len(specs))
	for i, spec := range specs {
		r := newRate(spec, nil)
		if old := s.named(spec.Name); old != nil && r.countsKeysOf(old) && r.perToken == old.perToken &&
			r.depth == old.depth && r.maxDelay >= old.maxDelay {
			r.cells = old.cells
		} else {
			r.cells = newCells(spec.MaxKeys)
		}
		rates[i] = r
	}
	return rates
}

// Use puts prepared rates into force, in place of those before. What is taken of the latter from then on is not known
// to one whose rate or burst differ.
func (s *RateLimiters) Use(rates []*RateLimiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rates {
		if old := s.named(r.spec.Name); old != nil {
			r.follow(s.now(), old)
		}
		if r.fleet != nil {
			r.fleet.rate.Store(r)
		}
	}
	s.inForce = rates
}

// follow has r, which is not in use yet, go on with what old has counted.
func (r *RateLimiter) follow(now int64, old *RateLimiter) {
	r.near = old.near // also where the keys start anew
	if !r.countsKeysOf(old) {
		return
	}
	if r.cells != old.cells {
		r.cells.seed = old.seed
		for i := range old.all {
			if debt := old.all[i].Load() - now; debt > 0 {
				r.all[i].Store(now + scaledDebt(debt, old, r))
			}
		}
	}
	if old.fleet != nil && r.fleet != nil {
		r.fleet = old.fleet.follow(now, r)
	}
}

// countsKeysOf reports whether r and old count the same keys in as much memory.
func (r *RateLimiter) countsKeysOf(old *RateLimiter) bool {
	return old.spec.Of == r.spec.Of && old.spec.MaxKeys == r.spec.MaxKeys
}

// Named is the rate in force of this name; nil = there is none.
func (s *RateLimiters) Named(name string) *RateLimiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.named(name)
}

// named is Named; mu is held.
func (s *RateLimiters) named(name string) *RateLimiter {
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
