package auth

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"
)

// OrderTokens makes and checks tokens of orders: HMAC(SKU, user, time slot). It stores none of them; all instances with
// the same key accept each other's tokens. A token is valid in the slot in which it was made and in the next one: for
// one to two slots. It is safe for concurrent use and does not allocate.
type OrderTokens struct {
	mac  *mac
	slot int64 // ms
}

const (
	// OrderTokenLength is the length of a token in bytes: ASCII letters, digits, "-" and "_".
	OrderTokenLength = 22

	tokenSize = 16 // bytes of the sum that a token shows: 128 bits cannot be guessed within two slots
	minSlot   = time.Second
)

// NewOrderTokens takes a key of at least 16 bytes, which it copies, and a slot of at least one second.
func NewOrderTokens(key []byte, slot time.Duration) (*OrderTokens, error) {
	m, err := newMAC(key)
	if err != nil {
		return nil, err
	}
	if slot < minSlot {
		return nil, errors.New("a slot must be at least 1s")
	}
	return &OrderTokens{mac: m, slot: slot.Milliseconds()}, nil
}

// Append appends the token of user for sku at unixMS.
func (t *OrderTokens) Append(dst, sku, user []byte, unixMS int64) []byte {
	state := t.mac.acquire()
	dst = base64.RawURLEncoding.AppendEncode(dst, state.sumOrder(sku, user, unixMS/t.slot))
	t.mac.release(state)
	return dst
}

// Valid reports whether token is the one of user for sku, made in the slot of unixMS or in the slot before. Its
// duration does not depend on how many bytes of a wrong token are right.
func (t *OrderTokens) Valid(token, sku, user []byte, unixMS int64) bool {
	var given [tokenSize]byte
	if len(token) != OrderTokenLength {
		return false
	}
	// Strict, or else four different last letters would decode to the same bytes.
	if _, err := base64.RawURLEncoding.Strict().Decode(given[:], token); err != nil {
		return false
	}
	state := t.mac.acquire()
	slot := unixMS / t.slot
	equal := subtle.ConstantTimeCompare(given[:], state.sumOrder(sku, user, slot))
	equal |= subtle.ConstantTimeCompare(given[:], state.sumOrder(sku, user, slot-1))
	t.mac.release(state)
	return equal == 1
}

// sumOrder writes each field after its length, so no two triples have one text. The first line separates these sums
// from other uses of the same key.
func (s *macState) sumOrder(sku, user []byte, slot int64) []byte {
	s.text = append(s.text[:0], "order token v1\n"...)
	for _, field := range [2][]byte{sku, user} {
		s.text = binary.BigEndian.AppendUint32(s.text, uint32(len(field)))
		s.text = append(s.text, field...)
	}
	s.text = binary.BigEndian.AppendUint64(s.text, uint64(slot))
	return s.sumText()[:tokenSize]
}
