package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// Cookies verifies cookie values that the upstream signed: VALUE.MAC. MAC is the HMAC-SHA256 of VALUE in hexadecimal or
// in Base64 of either alphabet, with or without padding. The value may begin with "s:", as in Express. It is safe for
// concurrent use and does not allocate.
type Cookies struct{ mac *mac }

// newCookies takes a key of at least 16 bytes, which it copies.
func newCookies(key []byte) (*Cookies, error) {
	m, err := newMAC(key)
	if err != nil {
		return nil, err
	}
	return &Cookies{m}, nil
}

// Value returns VALUE, a part of signed; false when the signature is missing or wrong.
func (c *Cookies) Value(signed []byte) (value []byte, ok bool) {
	signed = bytes.TrimPrefix(signed, expressPrefix)
	dot := bytes.LastIndexByte(signed, '.')
	if dot <= 0 {
		return nil, false
	}
	value = signed[:dot]
	var given [sha256.Size]byte
	if !decodeSum(&given, signed[dot+1:]) {
		return nil, false
	}
	state := c.mac.acquire()
	state.text = append(state.text, value...)
	ok = hmac.Equal(given[:], state.sumText())
	c.mac.release(state)
	if !ok {
		return nil, false
	}
	return value, true
}

var expressPrefix = []byte("s:")

// decodeSum reads a sum of 32 bytes in hexadecimal or in Base64.
func decodeSum(sum *[sha256.Size]byte, text []byte) bool {
	if len(text) == hex.EncodedLen(len(sum)) {
		_, err := hex.Decode(sum[:], text)
		return err == nil
	}
	const unpaddedLength = 43
	text = bytes.TrimSuffix(text, []byte("="))
	if len(text) != unpaddedLength {
		return false
	}
	var standard [unpaddedLength]byte // in the standard alphabet
	for i, c := range text {
		switch c {
		case '-':
			c = '+'
		case '_':
			c = '/'
		}
		standard[i] = c
	}
	_, err := base64.RawStdEncoding.Decode(sum[:], standard[:])
	return err == nil
}
