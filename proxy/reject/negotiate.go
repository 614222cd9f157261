package reject

import (
	"bytes"

	"sluice/internal/octets"
)

// Format is the form of a rejection's body.
type Format uint8

// The formats.
const (
	Auto     Format = iota // by Accept: HTML for browsers, Problem for programs
	HTML                   // a page
	Problem                // RFC 9457, application/problem+json
	Envelope               // the shop's own {code,msg}
	numFormats
)

var contentTypes = [numFormats]string{
	HTML:     "text/html; charset=utf-8",
	Problem:  "application/problem+json",
	Envelope: "application/json; charset=utf-8",
}

var textHTML, application, jsonSuffix = []byte("text/html"), []byte("application/"), []byte("json")

// PrefersPage reports a client that names text/html and does not prefer JSON.
func PrefersPage(accept []byte) bool { return chooseFormat(accept) == HTML }

// chooseFormat is HTML for a client that names text/html and does not prefer JSON (RFC 9110, section 12.5.1). Browsers
// do so when they open a page; scripts of a page do not.
func chooseFormat(accept []byte) Format {
	if !bytes.Contains(accept, textHTML) {
		return Problem
	}
	page, program := 0, 0
	for len(accept) > 0 {
		var item []byte
		item, accept = octets.Cut(accept, ',')
		kind, params := octets.Cut(item, ';')
		switch kind = octets.Trim(kind); {
		case bytes.Equal(kind, textHTML):
			page = max(page, octets.Quality(params))
		case bytes.HasPrefix(kind, application) && bytes.HasSuffix(kind, jsonSuffix):
			program = max(program, octets.Quality(params))
		}
	}
	if page == 0 || program > page {
		return Problem
	}
	return HTML
}

// choose is the index of the locale that Accept-Language prefers (RFC 9110, section 12.5.4; RFC 4647), and 0 without a
// preference. The range that is closest to a locale gives its weight: zh-TW for zh-TW before zh, and zh before "*".
// A range for another region, such as zh-TW where only zh-CN is served, matches more closely than "*".
// Of equal weights the earlier range wins, then the closer match, then the earlier locale.
func (all locales) choose(accept []byte) (best int) {
	var closest [maxLocales]uint8
	var score [maxLocales]int
	for left := 1<<16 - 1; len(accept) > 0; left-- { // no header has as many ranges
		var item []byte
		item, accept = octets.Cut(accept, ',')
		tag, params := octets.Cut(item, ';')
		tag = octets.Trim(tag)
		for i := range all {
			m := match(tag, all[i].tag)
			if m <= closest[i] {
				continue
			}
			closest[i], score[i] = m, 0
			if q := octets.Quality(params); q > 0 {
				score[i] = q<<20 | left<<4 | int(m)
			}
		}
	}
	for i := range all {
		if score[i] > score[best] {
			best = i
		}
	}
	return best
}

// match is how close a range is to a tag: 0 not at all, 1 any language, 2 the same language of another region, 3 the
// same language with or without a region, 4 equal.
func match(tag []byte, served string) uint8 {
	primary, _ := octets.Cut(tag, '-')
	switch {
	case string(tag) == "*":
		return 1
	case len(primary) == 0:
		return 0
	case octets.EqualFold(tag, served):
		return 4
	case extends(tag, served), extends(served, tag):
		return 3
	case octets.EqualFold(primary, served), extends(served, primary):
		return 2
	}
	return 0
}

// extends reports whether tag is prefix with further subtags.
func extends[A, B ~[]byte | ~string](tag A, prefix B) bool {
	n := len(prefix)
	return len(tag) > n && tag[n] == '-' && octets.EqualFold(tag[:n], prefix)
}
