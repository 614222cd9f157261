package auth

import (
	"encoding/hex"
	"fmt"
	"strconv"
)

// SignedOrder is what the upstream is told about an order, in the form in which the upstream receives it.
//
// The body is not part of it. The signature covers what Sluice decided, which units are held until when, and not
// what the client writes about them. So the upstream can verify it before it reads the body, or behind a framework that
// parses the body first. Host is not part of it either: it may be the client's or the target's own.
type SignedOrder struct {
	Method   []byte // a token
	Target   []byte // path and query as they are forwarded, byte by byte: 0x21 to 0x7e
	Serial   string // 1 to 128 bytes, 0x21 to 0x7e
	SKU      []byte // no control characters and no spaces
	Quantity int64  // units, at least 1
	Deadline int64  // Unix ms
}

// appendText appends the signed text: seven lines, the last one without a line feed. No field can hold a line feed: the
// parser rejects methods and targets with one, serials are visible ASCII, SKUs have no control characters, numbers are
// digits. So a text can be cut into fields in one way only, and no two orders share a text.
//
// The first line is the version of the text. Serials that are derived with the same secret are sums of texts that begin
// with a length of eight bytes, the first of them 0, so none of those texts equals one of these.
func (o *SignedOrder) appendText(dst []byte) []byte {
	dst = append(dst, "v1\n"...)
	dst = append(append(dst, o.Method...), '\n')
	dst = append(append(dst, o.Target...), '\n')
	dst = append(append(dst, o.Serial...), '\n')
	dst = append(append(dst, o.SKU...), '\n')
	dst = append(strconv.AppendInt(dst, o.Quantity, 10), '\n')
	return strconv.AppendInt(dst, o.Deadline, 10)
}

// Signer signs orders for the upstream with HMAC-SHA256. To rotate a key, make a new Signer; the upstream accepts both
// keys meanwhile. It is safe for concurrent use and does not allocate.
type Signer struct{ mac *mac }

// NewSigner returns a signer for a key of at least 16 bytes, which it copies.
func NewSigner(key []byte) (*Signer, error) {
	m, err := newMAC(key)
	if err != nil {
		return nil, fmt.Errorf("sign orders: %w", err)
	}
	return &Signer{m}, nil
}

// Append appends the value of Sluice-Signature: "v1=" and 64 hexadecimal digits in lower case.
func (s *Signer) Append(dst []byte, o SignedOrder) []byte {
	state := s.mac.acquire()
	state.text = o.appendText(state.text)
	dst = hex.AppendEncode(append(dst, "v1="...), state.sumText())
	s.mac.release(state)
	return dst
}
