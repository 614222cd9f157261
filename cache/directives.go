package cache

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// directives are what a response's Cache-Control says (RFC 9111, section 5.2.2; RFC 5861), or its CDN-Cache-Control in
// the place of that (RFC 9213).
type directives struct {
	targeted            bool     // CDN-Cache-Control: Expires does not count either
	forbids             bool     // no-store, private, no-cache: nothing that is given without asking
	noStale             bool     // must-revalidate, proxy-revalidate, s-maxage
	mustUnderstand      bool     // must-understand: a status that is not known here is not kept
	shared              lifetime // s-maxage
	maxAge              lifetime
	whileStale, ifError lifetime
}

// lifetime is a number of seconds that is said or not.
type lifetime struct {
	said bool
	d    time.Duration
}

// least keeps the shorter of two that are said: of a directive that stands twice.
func (l *lifetime) least(d time.Duration) {
	if !l.said || d < l.d {
		*l = lifetime{true, d}
	}
}

// directivesOf reads them. A shop that writes "private; max-age=5" means what it says first: where a name is none,
// nothing is given to others. Pragma, of HTTP/1.0, counts where nothing else is said.
func directivesOf(h *fasthttp.ResponseHeader) (d directives) {
	if lines := h.PeekAll("CDN-Cache-Control"); d.readTargeted(lines) {
		return d
	}
	d = directives{}
	lines := h.PeekAll("Cache-Control")
	d.forbids = len(lines) == 0 && bytes.EqualFold(h.Peek("Pragma"), []byte("no-cache"))
	for _, line := range lines {
		for len(line) > 0 {
			var name, value []byte
			name, value, line = cutDirective(line)
			d.forbids = d.forbids || bytes.ContainsAny(name, " \t;\"")
			d.parseOne(string(bytes.ToLower(name)), value)
		}
	}
	return d
}

// readTargeted reads CDN-Cache-Control, a dictionary of structured fields (RFC 9651): names are in lower case, and
// times are integers. It reports false where there is none, or none that is valid: then Cache-Control counts (RFC 9213,
// section 2.2).
func (d *directives) readTargeted(lines [][]byte) bool {
	for _, line := range lines {
		for len(line) > 0 {
			var name, value []byte
			name, value, line = cutDirective(line)
			name, _, _ = bytes.Cut(name, []byte(";")) // parameters mean nothing here
			value, _, _ = bytes.Cut(value, []byte(";"))
			if !isKey(name) {
				return false
			}
			d.targeted = true
			d.parseOne(string(name), value)
		}
	}
	return d.targeted
}

// isKey reports a key of a dictionary (RFC 9651, section 3.1.2).
func isKey(name []byte) bool {
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c == '*'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.')) {
			return false
		}
	}
	return len(name) > 0
}

func (d *directives) parseOne(name string, value []byte) {
	switch name {
	case "no-store", "private", "no-cache": // with field names too: to forbid all is always allowed
		d.forbids = true
	case "must-understand":
		d.mustUnderstand = true
	case "must-revalidate", "proxy-revalidate":
		d.noStale = true
	case "s-maxage":
		d.noStale = true
		d.shared.least(seconds(value))
	case "max-age":
		d.maxAge.least(seconds(value))
	case "stale-while-revalidate":
		d.whileStale.least(seconds(value))
	case "stale-if-error":
		d.ifError.least(seconds(value))
	}
}

// cutDirective cuts the first "name=value" of a list, in which a value may be quoted.
func cutDirective(list []byte) (name, value, rest []byte) {
	quoted, end := false, len(list)
scan:
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			end = i
			break scan
		}
	}
	rest = list[min(end+1, len(list)):]
	name, value, _ = bytes.Cut(list[:end], []byte("="))
	return bytes.TrimSpace(name), bytes.Trim(bytes.TrimSpace(value), `"`), rest
}

// seconds reads delta-seconds (RFC 9111, section 1.2.2). What is no number is 0: stale at once.
func seconds(v []byte) time.Duration {
	n, err := strconv.ParseUint(string(v), 10, 64)
	switch {
	case err != nil && len(v) > 10 && isDigits(v), n > math.MaxInt32:
		return math.MaxInt32 * time.Second
	case err != nil:
		return 0
	}
	return time.Duration(n) * time.Second
}

func isDigits(v []byte) bool {
	for _, c := range v {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
