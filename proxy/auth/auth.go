// Package auth checks who sends a request and signs what the upstream is told: users by a JSON web token or a signed
// cookie, orders by a token that the sale's page hands out, and forwarded orders by an HMAC that the upstream verifies.
// It promises that a value is accepted only with a valid signature by a configured key and in the one configured
// algorithm, and that its memory is bounded whatever clients send.
// It does not sign users in, fetch keys from elsewhere, or read the clock: the caller passes the time.
package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"sync"
)

// minKeySize is the shortest secret in bytes. A shorter one can be found from one signature by trying all.
const minKeySize = 16

// mac computes HMAC-SHA256 (RFC 2104, FIPS 180-4) with one key. It is safe for concurrent use. It allocates nothing
// once its pool is warm.
type mac struct{ states sync.Pool }

// macState is what one sum needs. Its hash holds the key and is only reset between sums.
type macState struct {
	hash hash.Hash
	text []byte
	sum  [sha256.Size]byte
}

// newMAC copies key. A key that is too short is an error.
func newMAC(key []byte) (*mac, error) {
	if len(key) < minKeySize {
		return nil, fmt.Errorf("the key has %d bytes, fewer than %d", len(key), minKeySize)
	}
	key = append([]byte(nil), key...)
	m := new(mac)
	m.states.New = func() any { return &macState{hash: hmac.New(sha256.New, key)} }
	return m, nil
}

// acquire returns a state with an empty text. The caller gives it back with release.
func (m *mac) acquire() *macState {
	s := m.states.Get().(*macState)
	s.text = s.text[:0]
	return s
}

func (m *mac) release(s *macState) { m.states.Put(s) }

// sumText returns the sum of s.text. It is valid until the next sum of s.
func (s *macState) sumText() []byte {
	s.hash.Reset()
	s.hash.Write(s.text)
	return s.hash.Sum(s.sum[:0])
}
