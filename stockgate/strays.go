package stockgate

import (
	"sync"
	"sync/atomic"
)

// strays are requests that on_error has admitted while nothing was kept of their SKU: no entry counts them. Were they not told
// apart when they leave, each would count somebody else out, and max_in_flight_per_unit let in one more. There are never more than requests
// in flight.
type strays struct {
	all atomic.Int64
	mu  sync.Mutex
	of  map[string]int64 // by SKU, above 0
}

func (s *strays) enter(sku []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[string]int64)
	}
	s.of[string(sku)]++
	s.all.Add(1)
}

// leave counts one out; false = there is none of this SKU. It may be another one of the same SKU that leaves: until the stray
// does, one too many counts as in flight, and never one too few.
func (s *strays) leave(sku []byte) bool {
	if s.all.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.of[string(sku)]
	switch n {
	case 0:
		return false
	case 1:
		delete(s.of, string(sku))
	default:
		s.of[string(sku)] = n - 1
	}
	s.all.Add(-1)
	return true
}
