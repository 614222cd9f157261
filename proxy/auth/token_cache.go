package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// tokenCache holds a bounded number of verified tokens, so that many requests of one user cost one signature check.
// Only tokens with a valid signature are stored. The key is the SHA-256 of the token, for which no collision is known.
// A set holds four tokens. A fifth one replaces the one that expires first, which is verified again when it comes back.
type tokenCache struct {
	shards []cacheShard
	sets   uint64 // of one shard
}

const (
	cacheWays   = 4 // tokens of one set
	cacheShards = 16
)

type digest [sha256.Size]byte

type cacheShard struct {
	mu      sync.RWMutex
	entries []cacheEntry // the entries of one set are neighbours
	_       [64]byte
}

type cacheEntry struct {
	key    digest
	until  int64 // Unix s; 0 = empty
	claims map[string][]byte
}

// newTokenCache makes a cache of about size tokens; 0 = none.
func newTokenCache(size int) *tokenCache {
	if size <= 0 {
		return nil
	}
	c := &tokenCache{shards: make([]cacheShard, cacheShards), sets: uint64(size/(cacheShards*cacheWays) + 1)}
	for i := range c.shards {
		c.shards[i].entries = make([]cacheEntry, c.sets*cacheWays)
	}
	return c
}

// set returns the shard and the entries that may hold a token.
func (c *tokenCache) set(key *digest) (s *cacheShard, entries []cacheEntry) {
	n := binary.LittleEndian.Uint64(key[:])
	s = &c.shards[n%cacheShards]
	first := n / cacheShards % c.sets * cacheWays
	return s, s.entries[first : first+cacheWays]
}

// claims returns the claims of a token that is valid at now (Unix s); nil = it is not stored or has expired.
func (c *tokenCache) claims(key *digest, now int64) map[string][]byte {
	if c == nil {
		return nil
	}
	s, entries := c.set(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range entries {
		if entries[i].until > now && entries[i].key == *key {
			return entries[i].claims
		}
	}
	return nil
}

// store keeps the claims of a token until then (Unix s).
func (c *tokenCache) store(key *digest, claims map[string][]byte, until int64) {
	if c == nil {
		return
	}
	s, entries := c.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	victim := 0
	for i := range entries {
		if entries[i].key == *key {
			victim = i
			break
		}
		if entries[i].until < entries[victim].until {
			victim = i
		}
	}
	entries[victim] = cacheEntry{*key, until, claims}
}
