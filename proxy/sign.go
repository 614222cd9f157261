package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"sync"
)

// minSignKey is the shortest key in bytes that signs: what is shorter can be guessed from one signature.
const minSignKey = 16

// signed is what the shop is told of an order, as the shop sees it: what it verifies is what it reads.
//
// The body is not in it. The gate vouches for what it decided, which unit is held until when, and not for what the
// client writes about it; and a shop can verify this much before it reads a body, or behind a framework that parses
// it first. Host is not in it either: it may be the client's or a target's own.
type signed struct {
	method   []byte // a token
	target   []byte // path and query as they are forwarded, byte by byte: 0x21 to 0x7e
	serial   string // 1 to 128 bytes, 0x21 to 0x7e
	sku      []byte // a ValidSKU
	quantity int64  // units, at least 1
	deadline int64  // Unix ms
}

// appendText appends what is signed: seven lines without an end to the last one. No field can hold a line feed: the
// wire's guard refuses methods and targets that do, serials are visible ASCII, a ValidSKU has no control characters,
// numbers are digits. So there is one way to cut a text into fields, and no two orders share a text. The first line
// says how the others are to be read; and no serial is derived from a text that begins so (those begin with a length
// of eight bytes, the first of them 0), which is why one secret may do both.
func (o signed) appendText(dst []byte) []byte {
	dst = append(dst, "v1\n"...)
	dst = append(append(dst, o.method...), '\n')
	dst = append(append(dst, o.target...), '\n')
	dst = append(append(dst, o.serial...), '\n')
	dst = append(append(dst, o.sku...), '\n')
	dst = append(strconv.AppendInt(dst, o.quantity, 10), '\n')
	return strconv.AppendInt(dst, o.deadline, 10)
}

// signer signs orders with one key: HMAC-SHA256 (RFC 2104, FIPS 180-4). A key is replaced by a new signer; a shop
// that accepts both keys meanwhile misses nothing. It is safe for concurrent use.
type signer struct{ desks sync.Pool }

// signingDesk is what one signature needs: its hash is keyed once and only reset after.
type signingDesk struct {
	mac  hash.Hash
	text []byte
	sum  [sha256.Size]byte
}

// newSigner returns a signer for a key of at least 16 bytes, which it copies.
func newSigner(key []byte) (*signer, error) {
	if len(key) < minSignKey {
		return nil, fmt.Errorf("sign orders: the key has %d bytes, fewer than %d", len(key), minSignKey)
	}
	key = append([]byte(nil), key...)
	s := new(signer)
	s.desks.New = func() any { return &signingDesk{mac: hmac.New(sha256.New, key)} }
	return s, nil
}

// append appends the value of Sluice-Signature: "v1=" and 64 hexadecimal digits in lower case.
func (s *signer) append(dst []byte, o signed) []byte {
	d := s.desks.Get().(*signingDesk)
	d.text = o.appendText(d.text[:0])
	d.mac.Reset()
	d.mac.Write(d.text)
	dst = hex.AppendEncode(append(dst, "v1="...), d.mac.Sum(d.sum[:0]))
	s.desks.Put(d)
	return dst
}
