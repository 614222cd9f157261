package limiter

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// InFlightLimiter admits so many requests of each key at the same time.
//
// It promises that of no key more than max are in flight, and that a place that was given back is there again at once.
// Its memory is 16 bytes for each of the keys that it has room for. A key without a request in flight takes no room.
// When there is none for another key, its requests are rejected. A rejection for a full key writes nothing.
//
// Two keys are taken for the same where 48 bits of their seeded hashes agree in one part of the table: then they share
// their places.
//
// It is safe for concurrent use.
type InFlightLimiter struct {
	spec   InFlightSpec
	max    atomic.Uint64
	seed   maphash.Seed
	shards []inFlightShard
}

// InFlightSpec says what an [InFlightLimiter] admits. A field beyond its range counts as the nearest value within it.
type InFlightSpec struct {
	Name    string // of the limit
	Of      string // what the key is made of
	Max     int    // 1 to 65,535
	MaxKeys int    // 1 to 2^24, 16 bytes each
}

// inFlightShard is a part of the table, of open addressing. A cell is the tag of a key and, in its lower 16 bits, how
// many requests the key has in flight; 0 = free. Cells change under mu alone.
type inFlightShard struct {
	mu         sync.Mutex
	cells      []atomic.Uint64
	keys, held int
	room       int // keys
	_          cacheLine
}

const (
	maxInFlightKeys   = 1 << 24
	maxOfKey          = 1<<16 - 1
	tagBits           = 48
	inFlightShards    = 64
	inFlightOneShard  = 1 << 12 // keys up to which one shard has them all
	inFlightShardBits = 6
)

// NewInFlightLimiter returns one with nothing in flight.
func NewInFlightLimiter(spec InFlightSpec) *InFlightLimiter {
	l := &InFlightLimiter{spec: spec, seed: maphash.MakeSeed()}
	keys, shards := min(max(spec.MaxKeys, 1), maxInFlightKeys), 1
	if keys > inFlightOneShard {
		shards = inFlightShards
	}
	l.shards = make([]inFlightShard, shards)
	for i := range l.shards {
		s := &l.shards[i]
		s.room = (keys + shards - 1) / shards
		s.cells = make([]atomic.Uint64, 2*s.room+1)
		if shards > 1 { // keys are not spread evenly
			s.room = len(s.cells) - 1
		}
	}
	l.SetMax(spec.Max)
	return l
}

// SetMax changes how many requests of a key may be in flight. Those above it stay until they end.
func (l *InFlightLimiter) SetMax(most int) { l.max.Store(uint64(min(max(most, 1), maxOfKey))) }

// Full tells whether key has as many requests in flight as it may. It writes nothing.
func (l *InFlightLimiter) Full(key []byte) bool { return l.full(maphash.Bytes(l.seed, key)) }

// full reads without the lock. While a key is moved it may not be found, and counts as not full.
func (l *InFlightLimiter) full(hash uint64) bool {
	s, most := l.shardOf(hash), l.max.Load()
	for i, n := s.first(hash), 0; n < len(s.cells); i, n = s.next(i), n+1 {
		switch cell := s.cells[i].Load(); {
		case cell == 0:
			return false
		case cell>>16 == tagOf(hash):
			return cell&maxOfKey >= most
		}
	}
	return false
}

// Acquire takes a place of key. ticket is what Release gives it back by.
func (l *InFlightLimiter) Acquire(key []byte) (ticket uint64, ok bool) {
	hash := maphash.Bytes(l.seed, key)
	if l.full(hash) {
		return 0, false
	}
	s := l.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(hash)
	switch cell := s.cells[i].Load(); {
	case cell == 0 && s.keys >= s.room, cell != 0 && cell&maxOfKey >= l.max.Load():
		return 0, false
	case cell == 0:
		s.cells[i].Store(tagOf(hash)<<16 | 1)
		s.keys++
	default:
		s.cells[i].Store(cell + 1)
	}
	s.held++
	return hash, true
}

// Release gives the place of a ticket back, once.
func (l *InFlightLimiter) Release(ticket uint64) {
	s := l.shardOf(ticket)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(ticket)
	cell := s.cells[i].Load()
	if cell == 0 {
		panic("BUG: Release without Acquire")
	}
	s.held--
	if cell&maxOfKey > 1 {
		s.cells[i].Store(cell - 1)
		return
	}
	s.keys--
	s.free(i)
}

// Usage is how many requests of key are in flight, and how many may be.
func (l *InFlightLimiter) Usage(key []byte) (held, most int) {
	hash := maphash.Bytes(l.seed, key)
	s := l.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.cells[s.find(hash)].Load() & maxOfKey), int(l.max.Load())
}

// InFlight is how many keys have requests in flight, and how many requests.
func (l *InFlightLimiter) InFlight() (keys, requests int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		keys, requests = keys+s.keys, requests+s.held
		s.mu.Unlock()
	}
	return keys, requests
}

func (l *InFlightLimiter) shardOf(hash uint64) *inFlightShard {
	if len(l.shards) == 1 {
		return &l.shards[0]
	}
	return &l.shards[hash>>(64-inFlightShardBits)]
}

func tagOf(hash uint64) uint64 { return hash & (1<<tagBits - 1) }

// first is the cell at which the search for a key begins.
func (s *inFlightShard) first(hash uint64) int {
	i, _ := bits.Mul64(hash<<(64-tagBits), uint64(len(s.cells)))
	return int(i)
}

func (s *inFlightShard) next(i int) int {
	if i++; i < len(s.cells) {
		return i
	}
	return 0
}

// find is the cell of a key, or the free one that it would take. There is always a free one.
func (s *inFlightShard) find(hash uint64) int {
	for i := s.first(hash); ; i = s.next(i) {
		if cell := s.cells[i].Load(); cell == 0 || cell>>16 == tagOf(hash) {
			return i
		}
	}
}

// free empties cell i. Cells behind it move up, so that no search ends before its key.
func (s *inFlightShard) free(i int) {
	for j := s.next(i); ; j = s.next(j) {
		cell := s.cells[j].Load()
		if cell == 0 {
			break
		}
		// A cell may move to i if its search begins at i or before, on the way to j.
		if n := len(s.cells); (j-s.first(cell>>16)+n)%n >= (j-i+n)%n {
			s.cells[i].Store(cell)
			i = j
		}
	}
	s.cells[i].Store(0)
}

// InFlightLimiters are the limits in force. What is in flight stays counted where a limit goes on to count the same
// keys, by its name and Of, in as much memory.
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
			if old.spec.Name == spec.Name && old.spec.Of == spec.Of && old.spec.MaxKeys == spec.MaxKeys {
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
