package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// Cookies verifies values that the shop has signed: VALUE.MAC, where MAC is the HMAC-SHA256 of VALUE in hex or in
// Base64, of either alphabet, with or without padding. It may begin with "s:", as those of Express do. It is safe for
// concurrent use.
type Cookies struct{ mac *mac }

// NewCookies takes a key of at least 16 bytes, which it copies.
func NewCookies(key []byte) (*Cookies, error) {
	m, err := newMAC(key)
	if err != nil {
		return nil, err
	}
	return &Cookies{m}, nil
}

// Value returns what was signed, a part of signed; false when it was not.
func (c *Cookies) Value(signed []byte) (value []byte, ok bool) {
	signed = bytes.TrimPrefix(signed, express)
	dot := bytes.LastIndexByte(signed, '.')
	if dot <= 0 {
		return nil, false
	}
	value = signed[:dot]
	var given [sha256.Size]byte
	if !readSum(&given, signed[dot+1:]) {
		return nil, false
	}
	d := c.mac.take()
	d.text = append(d.text, value...)
	ok = hmac.Equal(given[:], d.of())
	c.mac.desks.Put(d)
	return value, ok
}

var express = []byte("s:")

// readSum reads a sum of 32 bytes in hex, or in Base64.
func readSum(sum *[sha256.Size]byte, text []byte) bool {
	if len(text) == hex.EncodedLen(len(sum)) {
		_, err := hex.Decode(sum[:], text)
		return err == nil
	}
	const length = 43 // without padding
	text = bytes.TrimSuffix(text, []byte("="))
	if len(text) != length {
		return false
	}
	var plain [length]byte
	for i, c := range text {
		switch c {
		case '-':
			c = '+'
		case '_':
			c = '/'
		}
		plain[i] = c
	}
	_, err := base64.RawStdEncoding.Decode(sum[:], plain[:])
	return err == nil
}
