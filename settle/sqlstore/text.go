package sqlstore

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

const escape = `\x`

// stored is a SKU or a serial, which may hold any byte, as text that every database keeps. Two texts are never stored
// as one.
func stored(text string) string {
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") && !strings.HasPrefix(text, escape) {
		return text
	}
	return escape + hex.EncodeToString([]byte(text))
}

// Text is a SKU, a serial or a user as columns and webhooks have it: any other bytes than valid UTF-8 as \x and
// hexadecimal.
func Text(text string) string { return stored(text) }

// original is the inverse of stored.
func original(text string) string {
	if digits, ok := strings.CutPrefix(text, escape); ok {
		if bytes, err := hex.DecodeString(digits); err == nil {
			return string(bytes)
		}
	}
	return text
}
