package auth

import (
	"encoding/base64"
	"errors"
	"time"
)

// OrderTokens makes and checks tokens of orders: HMAC(SKU, user, time slot). It stores none of them; all instances with
// the same key accept each other's tokens. A token is valid in the slot in which it was made and in the next one: for
// one to two slots. It is safe for concurrent use and does not allocate.
//
// The passes of a waiting room are such tokens too, with the room in place of the SKU: NewPasses.
type OrderTokens struct {
	sums *Sums
	slot int64 // ms
}

const (
	// OrderTokenLength is the length of a token in bytes: ASCII letters, digits, "-" and "_".
	OrderTokenLength = 22

	minSlot = time.Second
)

// newOrderTokens takes a key of at least 16 bytes, which it copies, and a slot of at least one second.
func newOrderTokens(key []byte, slot time.Duration) (*OrderTokens, error) {
	return newTokens("order token v1\n", [][]byte{key}, slot)
}

// NewPasses makes tokens for the passes of waiting rooms. The first key signs; a token by any of the keys is valid.
func NewPasses(keys [][]byte, slot time.Duration) (*OrderTokens, error) {
	return newTokens("room pass v1\n", keys, slot)
}

func newTokens(purpose string, keys [][]byte, slot time.Duration) (*OrderTokens, error) {
	sums, err := NewSums(purpose, keys)
	if err != nil {
		return nil, err
	}
	if slot < minSlot {
		return nil, errors.New("a slot must be at least 1s")
	}
	return &OrderTokens{sums: sums, slot: slot.Milliseconds()}, nil
}

// Append appends the token of user for sku at unixMS.
func (t *OrderTokens) Append(dst, sku, user []byte, unixMS int64) []byte {
	var sum [SumSize]byte
	return base64.RawURLEncoding.AppendEncode(dst, t.sums.Append(sum[:0], unixMS/t.slot, sku, user))
}

// Expires is when a token that is made at unixMS ends, in Unix ms.
func (t *OrderTokens) Expires(unixMS int64) int64 { return (unixMS/t.slot + 2) * t.slot }

// Valid reports whether token is the one of user for sku, made in the slot of unixMS or in the slot before. Its
// duration does not depend on how many bytes of a wrong token are right.
func (t *OrderTokens) Valid(token, sku, user []byte, unixMS int64) bool {
	slot := unixMS / t.slot
	return t.madeIn(token, sku, user, slot, slot-1)
}

// Expired reports whether token was valid in one of the four slots before, and is not any more. It tells people why
// they are rejected, and nothing else hangs on it.
func (t *OrderTokens) Expired(token, sku, user []byte, unixMS int64) bool {
	slot := unixMS / t.slot
	return t.madeIn(token, sku, user, slot-2, slot-3, slot-4, slot-5)
}

// madeIn reports whether token was made in one of slots. It looks at all of them.
func (t *OrderTokens) madeIn(token, sku, user []byte, slots ...int64) (made bool) {
	var given [SumSize]byte
	if len(token) != OrderTokenLength {
		return false
	}
	// Strict, or else four different last letters would decode to the same bytes.
	if _, err := base64.RawURLEncoding.Strict().Decode(given[:], token); err != nil {
		return false
	}
	for _, slot := range slots {
		made = t.sums.Valid(given[:], slot, sku, user) || made
	}
	return made
}
