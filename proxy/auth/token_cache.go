package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sync/atomic"
)

// tokenCache holds a bounded number of verified tokens, so that many requests of one user cost one signature check.
// Only tokens with a valid signature are stored. The key is the SHA-256 of the token, for which no collision is known.
// A set holds four tokens. A fifth one replaces the one that expires first, which is verified again when it comes back.
type tokenCache []tokenSet

type tokenSet [4]atomic.Pointer[verified]

type digest [sha256.Size]byte

type verified struct {
	key    digest
	until  int64 // Unix s
	claims map[string][]byte
}

// newTokenCache makes a cache of about size tokens; 0 = none.
func newTokenCache(size int) tokenCache { return make(tokenCache, (max(size, 0)+3)/4) }

// set returns the set that may hold a token.
func (c tokenCache) set(key *digest) *tokenSet {
	return &c[binary.LittleEndian.Uint64(key[:])%uint64(len(c))]
}

// claims returns the claims of a token that is valid at now (Unix s); nil = it is not stored or has expired.
func (c tokenCache) claims(key *digest, now int64) map[string][]byte {
	if len(c) == 0 {
		return nil
	}
	set := c.set(key)
	for i := range set {
		if v := set[i].Load(); v != nil && v.until > now && v.key == *key {
			return v.claims
		}
	}
	return nil
}

// store keeps the claims of a token until then (Unix s). Two at once may replace each other, which loses one of them.
func (c tokenCache) store(key *digest, claims map[string][]byte, until int64) {
	if len(c) == 0 {
		return
	}
	set := c.set(key)
	victim, first := &set[0], int64(math.MaxInt64)
	for i := range set {
		v := set[i].Load()
		if v == nil || v.key == *key {
			victim = &set[i]
			break
		}
		if v.until < first {
			victim, first = &set[i], v.until
		}
	}
	victim.Store(&verified{*key, until, claims})
}
