package reject

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sluice/internal/octets"
)

// body is what is written for one reason, format and locale: fixed text, and fields that differ between requests.
type body []segment

// segment is text, a field, or the condition of a block: it is written if the field has a value.
type segment struct {
	text        []byte
	field       field // if text is empty
	conditional bool
	negate      bool // the block is written if the field has no value
	block       int  // how many segments the block has
}

// field is a value that differs from request to request.
type field uint8

const (
	requestIDField field = iota
	skuField
	secondsField
	waitMSField
	clockField
	backField
	orderField
	causeField
	startsField
	startsTextField
	roomField
	limitField
)

// fields by their placeholders. A placeholder that has a fixed value in one format may be a field in another.
var fields = map[string]field{
	"request_id": requestIDField, "sku": skuField, "retry_after": secondsField, "wait_ms": waitMSField,
	"clock": clockField, "back": backField, "order": orderField, "cause": causeField, "detail": causeField,
	"starts": startsField, "starts_text": startsTextField, "room": roomField, "limit": limitField,
}

// values are the fields of one request. Whatever the request holds, they mean nothing in the text around them.
type values struct {
	c         *Case
	format    Format
	requestID []byte // as plain leaves it, and so is sku
	sku       []byte
	seconds   int    // of Retry-After; 0 = none
	order     string // Case.OrderLink if it is a path and the reason may have an order
	retries   bool   // the page leads to another attempt
	day, days string // the unit of the clock, escaped
}

// append appends the body with the fields of one request.
func (b body) append(dst []byte, v *values) []byte {
	for i := 0; i < len(b); i++ {
		switch s := &b[i]; {
		case len(s.text) > 0:
			dst = append(dst, s.text...)
		case !s.conditional:
			dst = v.append(dst, s.field)
		case v.has(s.field) == s.negate:
			i += s.block
		}
	}
	return dst
}

// has reports whether a field of a condition has a value.
func (v *values) has(f field) bool {
	switch f {
	case skuField:
		return len(v.sku) > 0
	case requestIDField:
		return len(v.requestID) > 0
	case orderField:
		return v.order != ""
	case causeField:
		return !v.c.Detail.isEmpty()
	case roomField:
		return v.c.Room != ""
	case limitField:
		return v.c.Limit != ""
	case startsField, startsTextField:
		return v.c.Reason == NotStarted && !v.c.Starts.IsZero()
	}
	return true
}

func (v *values) append(dst []byte, f field) []byte {
	switch f {
	case requestIDField:
		return append(dst, v.requestID...)
	case skuField:
		return append(dst, v.sku...)
	case secondsField:
		return strconv.AppendInt(dst, int64(v.wholeSeconds()), 10)
	case waitMSField:
		return strconv.AppendInt(dst, v.wait().Milliseconds(), 10)
	case clockField:
		return appendClock(dst, v.wait(), v.day, v.days)
	case backField:
		if v.retries {
			return appendPath(dst, v.c.RetryPath)
		}
		return appendPath(dst, v.c.BackPath)
	case orderField:
		return append(dst, v.order...)
	case roomField:
		return append(dst, v.c.Room...)
	case limitField:
		return appendEscaped(dst, v.c.Limit, v.format)
	case causeField:
		var text [256]byte // longer ones do not occur: operands are names of a configuration
		return appendEscaped(dst, v.c.Detail.AppendText(text[:0]), v.format)
	case startsField:
		return v.c.Starts.UTC().AppendFormat(dst, time.RFC3339)
	default: // startsTextField
		return v.c.Starts.UTC().AppendFormat(dst, startsLayout)
	}
}

// startsLayout is how a page without a script shows the start. A script shows it in the client's language and zone.
const startsLayout = "2006-01-02 15:04 UTC"

// plain is b, or nil if it needs escaping. A template may have put it into an attribute, a script or an address: a page
// shows it only if it means nothing in any of them.
func plain(b []byte, f Format) []byte {
	if f == HTML && !isPlain(b, "-._~=") || f != HTML && !isText(b) {
		return nil
	}
	return b
}

// soonest is the wait, in seconds, of a page for which none is known: it must not come again at once.
const soonest = 5

func (v *values) wholeSeconds() int {
	if v.format == HTML && v.seconds == 0 {
		return soonest
	}
	return v.seconds
}

// wait is the time until the sale starts if the client waits for that, else the seconds of Retry-After.
func (v *values) wait() time.Duration {
	if v.c.Reason == NotStarted && v.c.Wait > 0 {
		return v.c.Wait
	}
	return time.Duration(v.wholeSeconds()) * time.Second
}

// appendClock appends 0:42, 59:00, 1:00:00 or 2 days 1:00:00, rounded up to seconds.
func appendClock(dst []byte, d time.Duration, day, days string) []byte {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	two := func(n int64) { dst = append(dst, byte('0'+n/10), byte('0'+n%10)) }
	n := s / 86400
	if n > 0 {
		if n > 1 {
			day = days
		}
		dst = append(append(append(strconv.AppendInt(dst, n, 10), ' '), day...), ' ')
	}
	if h := s / 3600 % 24; n > 0 || h > 0 {
		dst = append(strconv.AppendInt(dst, h, 10), ':')
		two(s / 60 % 60)
	} else {
		dst = strconv.AppendInt(dst, s/60, 10)
	}
	dst = append(dst, ':')
	two(s % 60)
	return dst
}

// maxPath is the longest path in a page or a header.
const maxPath = 8 << 10

// isPath reports a path of this host, with or without a query, that means nothing to the page or header around it, but
// for "&".
func isPath[T ~[]byte | ~string](path T) bool {
	return len(path) > 0 && len(path) <= maxPath && path[0] == '/' && (len(path) == 1 || path[1] != '/') &&
		isPlain(path, "-._~=/?&%:@+,;!$*")
}

// appendPath appends a path without its fragment, escaped for HTML, or "/" instead of anything else.
func appendPath(dst, path []byte) []byte {
	path, _ = octets.Cut(path, '#')
	if !isPath(path) {
		return append(dst, '/')
	}
	for {
		part, rest := octets.Cut(path, '&')
		dst = append(dst, part...)
		if len(part) == len(path) {
			return dst
		}
		dst, path = append(dst, "&amp;"...), rest
	}
}

// isPlain reports that b holds nothing but ASCII letters, digits and marks.
func isPlain[T ~[]byte | ~string](b T, marks string) bool {
	for i := range len(b) {
		c := b[i]
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9') && strings.IndexByte(marks, c) < 0 {
			return false
		}
	}
	return true
}

// The bytes, beside control bytes, that need escaping: in a string of JSON, which may stand in HTML; and in HTML, which
// may stand in a string of a script.
const (
	jsonSpecial = "\"&<>\\\x7f"
	htmlSpecial = jsonSpecial + "'`"
)

// byteSet has the bytes that need escaping.
type byteSet [256]bool

func withControls(special string) (s byteSet) {
	for c := range ' ' {
		s[c] = true
	}
	for _, c := range []byte(special) {
		s[c] = true
	}
	return s
}

var escapedInJSON, escapedInHTML = withControls(jsonSpecial), withControls(htmlSpecial)

// isText reports valid UTF-8 that needs no escaping in JSON.
func isText(b []byte) bool {
	var all byte
	for _, c := range b {
		if escapedInJSON[c] {
			return false
		}
		all |= c
	}
	return all < utf8.RuneSelf || utf8.Valid(b)
}

// appendEscaped appends text for a page, or else for a string of JSON.
func appendEscaped[T ~[]byte | ~string](dst []byte, text T, f Format) []byte {
	special := &escapedInJSON
	if f == HTML {
		special = &escapedInHTML
	}
	for i := range len(text) {
		switch c := text[i]; {
		case !special[c]:
			dst = append(dst, c)
		case f == HTML:
			dst = append(strconv.AppendInt(append(dst, "&#"...), int64(c), 10), ';')
		default:
			const digits = "0123456789abcdef"
			dst = append(append(dst, `\u00`...), digits[c>>4], digits[c&15])
		}
	}
	return dst
}
