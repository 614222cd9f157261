package param

import (
	"bytes"
	"unicode/utf8"
)

// What a request may name, in bytes and units. The bounds keep keys in Redis and in memory small.
const (
	MaxSKU      = 128
	MaxUser     = 256
	MaxKey      = 128 // of an Idempotency-Key
	MaxQuantity = 1_000_000_000

	maxRequestID = 128
)

// ValidSKU reports whether a request may name this SKU: 1 to MaxSKU bytes of UTF-8 without control characters, spaces
// and braces, which would break or move a Redis key.
func ValidSKU(b []byte) bool {
	if len(b) == 0 || len(b) > MaxSKU || !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c <= ' ' || c == 0x7f || c == '{' || c == '}' {
			return false
		}
	}
	return true
}

// ValidUser reports whether a request may name this user: 1 to MaxUser bytes without control characters.
func ValidUser(b []byte) bool {
	if len(b) == 0 || len(b) > MaxUser {
		return false
	}
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// ValidIdempotencyKey reports whether an Idempotency-Key can be a serial: 1 to MaxKey visible ASCII bytes. "." and ".."
// cannot, since the status URL of an order has the serial as a segment of its path, nor can what begins with \x: the
// settlement would read it as the bytes of another serial.
func ValidIdempotencyKey(b []byte) bool {
	if len(b) == 0 || len(b) > MaxKey || string(b) == "." || string(b) == ".." || bytes.HasPrefix(b, []byte(`\x`)) {
		return false
	}
	for _, c := range b {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// ParseQuantity parses a number of units from 1 to limit, in digits without leading zeros. limit 0 means MaxQuantity.
func ParseQuantity(b []byte, limit int64) (units int64, ok bool) {
	if len(b) == 0 || len(b) > 10 || b[0] == '0' {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		units = units*10 + int64(c-'0')
	}
	return units, units <= MaxQuantity && (limit == 0 || units <= limit)
}

// ValidRequestID reports whether a request ID that came along is fit for a header and a log line.
func ValidRequestID(b []byte) bool {
	if len(b) == 0 || len(b) > maxRequestID {
		return false
	}
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
