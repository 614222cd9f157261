package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// memory is a bounded number of tokens that were verified, so that a crowd does not cost a signature check for each of
// its requests. Nothing gets in without a valid signature. It is keyed by SHA-256, which nobody makes two tokens agree
// in. Where four tokens share a place, the one that expires first makes room for a fifth; it is verified anew.
type memory struct {
	shards []shard
	sets   uint64 // of a shard
}

const (
	ways      = 4 // tokens of a set
	numShards = 16
)

type digest [sha256.Size]byte

type shard struct {
	mu      sync.RWMutex
	entries []entry // a set's stand together
	_       [64]byte
}

type entry struct {
	key    digest
	until  int64 // Unix s; 0 = empty
	claims map[string][]byte
}

// newMemory holds about n tokens; 0 = none.
func newMemory(n int) *memory {
	if n <= 0 {
		return nil
	}
	m := &memory{shards: make([]shard, numShards), sets: uint64(n/(numShards*ways) + 1)}
	for i := range m.shards {
		m.shards[i].entries = make([]entry, m.sets*ways)
	}
	return m
}

// set is where tokens of a digest may stand.
func (m *memory) set(key *digest) (s *shard, entries []entry) {
	n := binary.LittleEndian.Uint64(key[:])
	s = &m.shards[n%numShards]
	first := n / numShards % m.sets * ways
	return s, s.entries[first : first+ways]
}

// find returns the claims of a token that is still good at now (Unix s).
func (m *memory) find(key *digest, now int64) map[string][]byte {
	if m == nil {
		return nil
	}
	s, entries := m.set(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range entries {
		if entries[i].until > now && entries[i].key == *key {
			return entries[i].claims
		}
	}
	return nil
}

// keep remembers a token until then.
func (m *memory) keep(key *digest, claims map[string][]byte, until int64) {
	if m == nil {
		return
	}
	s, entries := m.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := 0
	for i := range entries {
		if entries[i].key == *key {
			at = i
			break
		}
		if entries[i].until < entries[at].until {
			at = i
		}
	}
	entries[at] = entry{*key, until, claims}
}
