// Package auth tells whether a request may say what it says: that a user is that user, by the shop's own signed token
// (JWT) or cookie, and that an order began at the sale's page after the start, by a token of the gate. It promises that
// nothing is believed that was not signed by the key of the configuration and in its one algorithm, and that nobody can
// make it remember more than a fixed amount.
// It refuses to sign anybody in, to fetch keys from elsewhere, and to read the clock: the caller passes the time.
package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"sync"
)

// minKey is the shortest secret in bytes: what is shorter can be guessed from one signature.
const minKey = 16

// mac computes HMAC-SHA256 (RFC 2104) with one key. It is safe for concurrent use and allocates nothing once it is warm.
type mac struct{ desks sync.Pool }

// desk is what one sum needs: its hash is keyed once and only reset after.
type desk struct {
	hash hash.Hash
	text []byte
	sum  [sha256.Size]byte
}

func newMAC(key []byte) (*mac, error) {
	if len(key) < minKey {
		return nil, fmt.Errorf("the key has %d bytes, fewer than %d", len(key), minKey)
	}
	key = append([]byte(nil), key...)
	m := new(mac)
	m.desks.New = func() any { return &desk{hash: hmac.New(sha256.New, key)} }
	return m, nil
}

// take returns a desk with an empty text; give it back with m.desks.Put.
func (m *mac) take() *desk {
	d := m.desks.Get().(*desk)
	d.text = d.text[:0]
	return d
}

// of sums the desk's text. It is good until the next sum.
func (d *desk) of() []byte {
	d.hash.Reset()
	d.hash.Write(d.text)
	return d.hash.Sum(d.sum[:0])
}
