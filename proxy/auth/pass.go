package auth

import (
	"bytes"
	"strconv"

	"sluice/internal/octets"
)

// Passes are what admits the people of waiting rooms: the Unix time in ms at which the pass ends, a dot, and
// HMAC(end, room, user). None of them is stored; all instances with the keys make and accept the same. It is safe for
// concurrent use and does not allocate.
type Passes struct{ sums *Sums }

// NewPasses takes keys of at least 16 bytes. The first key signs; a pass by any of the keys is valid.
func NewPasses(keys [][]byte) (Passes, error) {
	sums, err := NewSums("room pass v1\n", keys)
	return Passes{sums}, err
}

// Append appends the pass of user for room that ends at a Unix time in ms.
func (p Passes) Append(dst, room, user []byte, ends int64) []byte {
	var sum [SumSize]byte
	dst = append(strconv.AppendInt(dst, ends, 10), '.')
	return appendSumText(dst, p.sums.Append(sum[:0], ends, room, user))
}

// Ends is when a pass of user for room ends, in Unix ms; 0 where it is none. Its duration does not depend on how many
// bytes of a wrong pass are right.
func (p Passes) Ends(pass, room, user []byte) int64 {
	digits, text, _ := bytes.Cut(pass, []byte{'.'})
	var sum [SumSize]byte
	ends := octets.Length(digits)
	if ends < 0 || !readSumText(sum[:], text) || !p.sums.Valid(sum[:], ends, room, user) {
		return 0
	}
	return ends
}
