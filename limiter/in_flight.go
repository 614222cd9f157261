package limiter

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// InFlightLimiter admits so many requests of each key at the same time.
//
// It promises that of no key more than max are in flight, and that a place that was given back is there again at once.
// A key without a request in flight is not kept, so that there are never more keys than requests. Two keys
// are taken for the same where their seeded hashes of 64 bits agree.
//
// It is safe for concurrent use.
type InFlightLimiter struct {
	spec   InFlightSpec
	max    atomic.Int64
	seed   maphash.Seed
	shards [inFlightShards]inFlightShard
}

// InFlightSpec says what an [InFlightLimiter] admits. A Max beyond its range counts as the nearest value within it.
type InFlightSpec struct {
	Name string // of the limit
	Of   string // what the key is made of
	Max  int    // 1 to 65,535
}

// inFlightShard has a part of the keys.
type inFlightShard struct {
	mu   sync.Mutex
	held map[uint64]int // requests in flight, by the hash of their key; no entry = none
	_    cacheLine
}

const (
	maxOfKey       = 1<<16 - 1
	inFlightShards = 64
)

// NewInFlightLimiter returns one with nothing in flight.
func NewInFlightLimiter(spec InFlightSpec) *InFlightLimiter {
	l := &InFlightLimiter{spec: spec, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].held = map[uint64]int{}
	}
	l.SetMax(spec.Max)
	return l
}

// SetMax changes how many requests of a key may be in flight. Those above it stay until they end.
func (l *InFlightLimiter) SetMax(most int) { l.max.Store(int64(min(max(most, 1), maxOfKey))) }

// Full tells whether key has as many requests in flight as it may.
func (l *InFlightLimiter) Full(key []byte) bool {
	held, most := l.Usage(key)
	return held >= most
}

// Acquire takes a place of key. ticket is what Release gives it back by.
func (l *InFlightLimiter) Acquire(key []byte) (ticket uint64, ok bool) {
	ticket = maphash.Bytes(l.seed, key)
	s := l.shardOf(ticket)
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held[ticket]
	if held >= int(l.max.Load()) {
		return 0, false
	}
	s.held[ticket] = held + 1
	return ticket, true
}

// Release gives the place of a ticket back, once.
func (l *InFlightLimiter) Release(ticket uint64) {
	s := l.shardOf(ticket)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch held := s.held[ticket]; held {
	case 0:
		panic("BUG: Release without Acquire")
	case 1:
		delete(s.held, ticket)
	default:
		s.held[ticket] = held - 1
	}
}

// Usage is how many requests of key are in flight, and how many may be.
func (l *InFlightLimiter) Usage(key []byte) (held, most int) {
	hash := maphash.Bytes(l.seed, key)
	s := l.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[hash], int(l.max.Load())
}

// InFlight is how many keys have requests in flight, and how many requests.
func (l *InFlightLimiter) InFlight() (keys, requests int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		keys += len(s.held)
		for _, held := range s.held {
			requests += held
		}
		s.mu.Unlock()
	}
	return keys, requests
}

func (l *InFlightLimiter) shardOf(hash uint64) *inFlightShard { return &l.shards[hash%inFlightShards] }

// InFlightLimiters are the limits in force. What is in flight stays counted where a limit goes on to count the same
// keys, by its name and Of.
//
// It is safe for concurrent use.
type InFlightLimiters struct {
	mu      sync.Mutex
	inForce []*InFlightLimiter
}

// Prepare makes the limits of specs, in their order. Nothing is in force before use is called.
func (s *InFlightLimiters) Prepare(specs []InFlightSpec) (all []*InFlightLimiter, use func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, spec := range specs {
		l := NewInFlightLimiter(spec)
		for _, old := range s.inForce {
			if old.spec.Name == spec.Name && old.spec.Of == spec.Of {
				l = old
			}
		}
		all = append(all, l)
	}
	return all, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, l := range all {
			l.SetMax(specs[i].Max)
		}
		s.inForce = all
	}
}

// Named is the limit in force of this name; nil = there is none.
func (s *InFlightLimiters) Named(name string) *InFlightLimiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.inForce {
		if l.spec.Name == name {
			return l
		}
	}
	return nil
}

// InFlight is how many requests the limit of this name has in flight.
func (s *InFlightLimiters) InFlight(name string) (keys, requests int) {
	if l := s.Named(name); l != nil {
		return l.InFlight()
	}
	return 0, 0
}
