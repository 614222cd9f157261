// Package octets holds the small functions on bytes that every parser of HTTP needs, once: tokens, optional white
// space, ASCII case, hexadecimal digits, lists. They allocate nothing.
// It knows no message and no header field.
package octets

import (
	"bytes"
	"math"
)

// Lower is c in lower case, where c is an ASCII letter.
func Lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// EqualFold reports whether a and b are equal without regard to ASCII case. No other letter folds.
func EqualFold[A, B ~[]byte | ~string](a A, b B) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if c, d := a[i], b[i]; c != d && Lower(c) != Lower(d) {
			return false
		}
	}
	return true
}

// HasPrefixFold reports whether b begins with prefix, without regard to ASCII case.
func HasPrefixFold[A, B ~[]byte | ~string](b A, prefix B) bool {
	return len(b) >= len(prefix) && EqualFold(b[:len(prefix)], prefix)
}

// EqualFieldName is EqualFold that also takes any punctuation for "-": CGI, WSGI and PHP fold both "-" and "_" into one
// variable name, and some servers fold all punctuation (RFC 3875, section 4.1.18, leaves it to them).
func EqualFieldName[A, B ~[]byte | ~string](a A, b B) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if dash(Lower(a[i])) != dash(Lower(b[i])) {
			return false
		}
	}
	return true
}

func dash(c byte) byte {
	if c < 0x80 && c > ' ' && !('a' <= c && c <= 'z' || '0' <= c && c <= '9') {
		return '-'
	}
	return c
}

// Trim cuts optional white space, spaces and tabs, off both ends (RFC 9110, section 5.6.3).
func Trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for n := len(b); n > 0 && (b[n-1] == ' ' || b[n-1] == '\t'); n = len(b) {
		b = b[:n-1]
	}
	return b
}

// Cut is bytes.Cut at one byte; after is nil when sep does not occur.
func Cut(b []byte, sep byte) (before, after []byte) {
	if i := bytes.IndexByte(b, sep); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// Unquote removes one pair of double quotes around v. It undoes no escapes.
func Unquote(v []byte) []byte {
	if n := len(v); n >= 2 && v[0] == '"' && v[n-1] == '"' {
		return v[1 : n-1]
	}
	return v
}

// tokenBytes marks tchar (RFC 9110, section 5.6.2).
var tokenBytes = func() (t [256]bool) {
	const tchar = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for i := range len(tchar) {
		t[tchar[i]] = true
	}
	return t
}()

// IsToken reports a token (RFC 9110, section 5.6.2).
func IsToken[T ~[]byte | ~string](b T) bool {
	for i := range len(b) {
		if !tokenBytes[b[i]] {
			return false
		}
	}
	return len(b) > 0
}

// IsText reports that b has no control byte but the tab, as a field value must (RFC 9110, section 5.5).
func IsText[T ~[]byte | ~string](b T) bool {
	for i := range len(b) {
		if c := b[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// HasToken reports whether a comma-separated field value holds a token, without regard to ASCII case.
func HasToken[T ~[]byte | ~string](list []byte, token T) bool {
	for len(list) > 0 {
		var item []byte
		item, list = Cut(list, ',')
		if EqualFold(Trim(item), token) {
			return true
		}
	}
	return false
}

// Unhex is the value of a hexadecimal digit, or 255.
func Unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= Lower(c) && Lower(c) <= 'f':
		return Lower(c) - 'a' + 10
	}
	return 255
}

// Escape reads the first byte of b, or the %XX that stands there. b is not empty.
func Escape(b []byte) (c byte, escaped bool) {
	if b[0] == '%' && len(b) > 2 {
		if hi, lo := Unhex(b[1]), Unhex(b[2]); hi|lo < 16 {
			return hi<<4 | lo, true
		}
	}
	return b[0], false
}

// HasUnicodeEscape reports a %uXXXX, which ASP.NET, CGI.pm and Jetty 9 undo.
func HasUnicodeEscape(b []byte) bool {
	for i := bytes.IndexByte(b, '%'); i >= 0; i = bytes.IndexByte(b, '%') {
		b = b[i+1:]
		if len(b) > 4 && Lower(b[0]) == 'u' && Unhex(b[1])|Unhex(b[2])|Unhex(b[3])|Unhex(b[4]) < 16 {
			return true
		}
	}
	return false
}

// Unescape appends src with each valid %XX replaced. dst may be src[:0]: the result is never longer than src.
func Unescape(dst, src []byte) []byte {
	for i := 0; i < len(src); i++ {
		c, escaped := Escape(src[i:])
		if escaped {
			i += 2
		}
		dst = append(dst, c)
	}
	return dst
}

// AppendField appends one header line with its CRLF. Neither name nor value may hold a line end.
func AppendField[N, V ~[]byte | ~string](dst []byte, name N, value V) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// IsBidiControl reports a character that changes the order in which text is shown, and so what a reader takes it for
// (Unicode, annex 9): the marks U+200E, U+200F and U+061C, embeddings and overrides U+202A to U+202E, and isolates
// U+2066 to U+2069. Show it escaped.
func IsBidiControl(c rune) bool {
	return c == 0x200e || c == 0x200f || c == 0x61c || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069
}

// Length reads a Content-Length as every parser reads it: the digits of an int64 without a leading zero; -1 for
// anything else.
func Length(b []byte) int64 {
	if len(b) == 0 || len(b) > 19 || b[0] == '0' && len(b) > 1 {
		return -1
	}
	var n uint64 // 19 digits fit
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + uint64(c-'0')
	}
	if n > math.MaxInt64 {
		return -1
	}
	return int64(n)
}
