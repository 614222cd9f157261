package auth

import (
	"errors"
	"time"
)

// OrderTokens makes and checks tokens of orders: HMAC(SKU, user, time slot). It stores none of them; all instances with
// the same key accept each other's tokens. A token is valid in the slot in which it was made and in the next one: for
// one to two slots. It is safe for concurrent use and does not allocate.
type OrderTokens struct {
	sums *Sums
	slot int64 // ms
}

const minSlot = time.Second

// newOrderTokens takes a key of at least 16 bytes, which it copies, and a slot of at least one second.
func newOrderTokens(key []byte, slot time.Duration) (*OrderTokens, error) {
	sums, err := NewSums("order token v1\n", [][]byte{key})
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
	return appendSumText(dst, t.sums.Append(sum[:0], unixMS/t.slot, sku, user))
}

// Valid reports whether token is the one of user for sku, made in the slot of unixMS or in the slot before. Its
// duration does not depend on how many bytes of a wrong token are right.
func (t *OrderTokens) Valid(token, sku, user []byte, unixMS int64) bool {
	var sum [SumSize]byte
	if !readSumText(sum[:], token) {
		return false
	}
	slot := unixMS / t.slot
	now, before := t.sums.Valid(sum[:], slot, sku, user), t.sums.Valid(sum[:], slot-1, sku, user)
	return now || before
}
