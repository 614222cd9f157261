package auth

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// SumSize is the length of a sum in bytes: 128 bits cannot be guessed.
const SumSize = 16

const sumTextLength = 22 // ASCII letters, digits, "-" and "_"

// appendSumText appends a sum as text.
func appendSumText(dst, sum []byte) []byte { return base64.RawURLEncoding.AppendEncode(dst, sum) }

// readSumText reads a sum of which text is the only text: four different last letters would decode to the same bytes.
func readSumText(sum, text []byte) bool {
	if len(text) != sumTextLength {
		return false
	}
	_, err := base64.RawURLEncoding.Strict().Decode(sum, text)
	return err == nil
}

// Sums signs a number and some fields with HMAC-SHA256, for one purpose. The first key signs; a sum by any of the keys
// is valid, so that a key can be rotated. It is safe for concurrent use and does not allocate.
type Sums struct {
	purpose string
	macs    []*mac
}

// NewSums takes keys of at least 16 bytes, which it copies. purpose separates these sums from other uses of the keys.
func NewSums(purpose string, keys [][]byte) (*Sums, error) {
	if len(keys) == 0 {
		return nil, errors.New("there is no key")
	}
	s := &Sums{purpose: purpose}
	for _, key := range keys {
		m, err := newMAC(key)
		if err != nil {
			return nil, err
		}
		s.macs = append(s.macs, m)
	}
	return s, nil
}

// Append appends the sum by the first key.
func (s *Sums) Append(dst []byte, number int64, fields ...[]byte) []byte {
	m := s.macs[0]
	state := m.acquire()
	dst = append(dst, state.sumFields(s.purpose, number, fields)...)
	m.release(state)
	return dst
}

// Valid reports whether sum is the one by any of the keys. Its duration does not depend on how many bytes are right.
func (s *Sums) Valid(sum []byte, number int64, fields ...[]byte) bool {
	equal := 0
	for _, m := range s.macs {
		state := m.acquire()
		equal |= subtle.ConstantTimeCompare(sum, state.sumFields(s.purpose, number, fields))
		m.release(state)
	}
	return equal == 1
}

// sumFields writes each field after its length, so no two lists of fields have one text.
func (s *macState) sumFields(purpose string, number int64, fields [][]byte) []byte {
	s.text = append(s.text[:0], purpose...)
	for _, field := range fields {
		s.text = binary.BigEndian.AppendUint32(s.text, uint32(len(field)))
		s.text = append(s.text, field...)
	}
	s.text = binary.BigEndian.AppendUint64(s.text, uint64(number))
	return s.sumText()[:SumSize]
}
