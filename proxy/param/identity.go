package param

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"sluice/internal/octets"
)

// What a request may name, in bytes and units. The bounds keep keys in Redis and in memory small.
const (
	maxSKU      = 128
	maxUser     = 256
	maxKey      = 128 // of an Idempotency-Key
	maxQuantity = 1_000_000_000

	maxRequestID = 128
)

// ValidSKU reports whether a request may name this SKU: 1 to maxSKU bytes that could name a user, without spaces and
// braces, which would break or move a Redis key.
func ValidSKU(b []byte) bool {
	return len(b) <= maxSKU && ValidUser(b) &&
		bytes.IndexByte(b, ' ') < 0 && bytes.IndexByte(b, '{') < 0 && bytes.IndexByte(b, '}') < 0
}

// ValidUser reports whether a request may name this user: 1 to maxUser bytes of UTF-8 without control characters, and
// with nothing at its ends that shops trim.
func ValidUser(b []byte) bool {
	if len(b) == 0 || len(b) > maxUser || !utf8.Valid(b) || len(bytes.TrimFunc(b, isTrimmed)) < len(b) {
		return false
	}
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// isTrimmed reports white space, but for control characters, and invisible letters. Laravel drops both from the ends of
// all input, and trim of JavaScript the first: " 7" and "7" are one user there.
func isTrimmed(r rune) bool {
	return r == ' ' || r >= utf8.RuneSelf && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r))
}

// ValidIdempotencyKey reports whether an Idempotency-Key can be a serial: 1 to maxKey visible ASCII bytes. "." and ".."
// cannot, since the status URL of an order has the serial as a segment of its path, nor can what begins with \x: the
// settlement would read it as the bytes of another serial.
func ValidIdempotencyKey(b []byte) bool {
	if len(b) == 0 || len(b) > maxKey || string(b) == "." || string(b) == ".." || bytes.HasPrefix(b, []byte(`\x`)) {
		return false
	}
	for _, c := range b {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// ParseQuantity parses a number of units from 1 to limit, in digits without leading zeros. limit 0 means maxQuantity.
func ParseQuantity(b []byte, limit int64) (units int64, ok bool) {
	units = octets.Length(b)
	if units < 1 || units > maxQuantity || limit > 0 && units > limit {
		return 0, false
	}
	return units, true
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
