package param

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"sluice/internal/octets"
)

// EndsSegment reports a byte at which a segment of a decoded path ends for some reader.
func EndsSegment(c byte) bool { return c == '/' || c == '\\' || c == ';' || c == '?' || c == '#' }

// Dropped reports a byte that WHATWG URL drops wherever it stands.
func Dropped(c byte) bool { return c == '\t' || c == '\r' || c == '\n' }

// CutPrefixFold cuts prefix off text. It ignores case as Letter does.
func CutPrefixFold(text []byte, prefix string) (rest []byte, ok bool) {
	for i := range len(prefix) {
		if len(text) == 0 {
			return nil, false
		}
		c, n := Letter(text)
		if c != octets.Lower(prefix[i]) {
			return nil, false
		}
		text = text[n:]
	}
	return text, true
}

// Letter is the first letter of text, which is not empty, in lower case, and how many bytes it has. Some letters are no
// ASCII, and an ASCII letter in the other case: the Kelvin sign and the long s by Unicode's simple folding, as in
// JavaScript, and an i with or without its dot by equalsIgnoreCase of Java.
func Letter(text []byte) (lower byte, n int) {
	if text[0] < utf8.RuneSelf {
		return octets.Lower(text[0]), 1
	}
	r, n := utf8.DecodeRune(text)
	switch r {
	case '\u212a':
		return 'k', n
	case 'ſ':
		return 's', n
	case 'İ', 'ı':
		return 'i', n
	}
	return text[0], 1
}

// Spelling is how a name stands for the one that is configured.
type Spelling uint8

// The spellings.
const (
	Another Spelling = iota // it is another name
	Exact
	Cased  // in another letter case (Unicode simple folding, and i as in Java)
	Folded // some reader makes the configured name of it
	Nested // some reader makes a list or an object of the configured name
)

// ofCase is the spelling of a name whose readers do not fold it.
func ofCase(name []byte, want string) Spelling {
	switch {
	case string(name) == want:
		return Exact
	case bytes.EqualFold(name, []byte(want)), equalsIgnoreCase(name, want):
		return Cased
	}
	return Another
}

// equalsIgnoreCase compares names as Java does, and so getBodyHttpData of Netty.
func equalsIgnoreCase(name []byte, want string) bool {
	rest, ok := CutPrefixFold(name, want)
	return ok && len(rest) == 0
}

// ofName is the spelling of a decoded name in a query, form or cookie. It does not allocate.
func ofName(name []byte, want string) Spelling {
	if s := ofCase(name, want); s != Another {
		return s
	}
	if at := strings.IndexByte(want, '['); at > 0 {
		return ofObject(name, want[:at], want[at:])
	}
	if len(name) < len(want) {
		return Another
	}
	name = stripped(name)
	if i := bytes.IndexByte(name, '['); i >= 0 && i < len(want) && bytes.IndexByte(name[i:], ']') > 0 {
		return Another // a list or an object of a shorter name
	}
	switch {
	case len(name) < len(want) || !sameInPHP(name[:len(want)], want):
		return Another
	case len(name) == len(want):
		return Folded
	case strings.IndexByte("[].", name[len(want)]) >= 0:
		return Nested
	}
	return Another
}

// ofField is ofName in a query, form or text. GoFrame fills a struct by letters and digits alone (goodsId).
func ofField(name []byte, want string) Spelling {
	s := ofName(name, want)
	if s == Another && bytes.IndexByte(name, ']') < 0 && sameLetters(name, want) {
		return Folded
	}
	return s
}

// ofFormField is ofField in a query or form, where GoFrame takes a name with "&" in it for more pairs.
func ofFormField(name []byte, want string) Spelling {
	s := ofField(name, want)
	if s == Another && bytes.IndexByte(name, '&') >= 0 && mentions(name, want) {
		return Nested
	}
	return s
}

var byteOrderMark = []byte("\ufeff")

// stripped is a name without what readers drop: Hono a byte order mark, URLSearchParams a "?" that begins a query, PHP
// blanks before it, Rack 2 and qs brackets before it, Django and Tomcat blanks on both sides of the name of a part, and
// PHP what follows a NUL.
func stripped(name []byte) []byte {
	const blanks = " \t\r\n\v\f"
	name = bytes.TrimLeft(bytes.TrimPrefix(name, byteOrderMark), blanks+"?[]")
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	return bytes.TrimRight(name, blanks)
}

// ofObject is ofName of a name in an object, order[sku_id] with the key [sku_id]. Nested are the object itself (order),
// what lies in the value (order[sku_id][]) and other spellings: PHP ignores what follows a bracket, qs takes dots.
func ofObject(name []byte, object, keys string) Spelling {
	name = stripped(name)
	if len(name) < len(object) || !sameInPHP(name[:len(object)], object) {
		return Another
	}
	rest := name[len(object):]
	if len(rest) > 0 && strings.IndexByte("[].", rest[0]) < 0 {
		return Another
	}
	for {
		var want string
		var key []byte
		want, keys = cutKey(keys)
		key, rest = cutKey(rest)
		switch {
		case want == "" || len(key) == 0:
			return Nested
		case !bytes.EqualFold(key, []byte(want)) && !sameLetters(key, want):
			return Another
		}
	}
}

// cutKey cuts the first key off those in brackets, or between dots.
func cutKey[T string | []byte](keys T) (key, rest T) {
	begin := 0
	for begin < len(keys) && (keys[begin] == '[' || keys[begin] == ']' || keys[begin] == '.') {
		begin++
	}
	end := begin
	for end < len(keys) && keys[end] != '[' && keys[end] != ']' && keys[end] != '.' {
		end++
	}
	return keys[begin:end], keys[end:]
}

// sameLetters compares names by their letters and digits in any case, as GoFrame does, and Fastjson but for other marks
// than "_" and "-".
func sameLetters(name []byte, want string) bool {
	n := 0
	for i := range len(want) {
		if isMark(want[i]) {
			continue
		}
		for n < len(name) && isMark(name[n]) {
			n++
		}
		if n == len(name) || octets.Lower(name[n]) != octets.Lower(want[i]) {
			return false
		}
		n++
	}
	for n < len(name) && isMark(name[n]) {
		n++
	}
	return n > 0 && n == len(name)
}

// isMark reports a byte of ASCII that is no letter or digit.
func isMark(c byte) bool { return c < utf8.RuneSelf && (!isNameByte(c) || c == '_') }

// hasMember reports whether almost JSON could have the name: in quotes before a colon, or escaped there.
func hasMember(text []byte, want string) bool {
	for before := range bytes.SplitSeq(text, []byte{':'}) {
		before, quoted := bytes.CutSuffix(bytes.TrimRight(before, " \t\r\n"), []byte{'"'})
		word := before[bytes.LastIndexByte(before, '"')+1:]
		if quoted && (sameLetters(word, want) || bytes.Contains(word, []byte(`\u`))) {
			return true
		}
	}
	return false
}

// namedInXML reports whether XML could have an element or attribute of the name, or one whose name is escaped. A word
// is none within another (appid for id), and in a URL (?id=1).
func namedInXML(text []byte, want string) bool {
	for i := 1; i < len(text); i++ {
		if before := text[i-1]; before > ' ' && strings.IndexByte(`<:"'`, before) < 0 {
			continue
		}
		end := i
		for end < len(text) && isXMLName(text[end]) {
			end++
		}
		if sameLetters(text[i:end], want) {
			return true
		}
	}
	for tag := range bytes.SplitSeq(text, []byte{'<'}) {
		if tag, _ = octets.Cut(tag, '>'); bytes.Contains(tag, []byte("&#")) {
			return true
		}
	}
	return false
}

func isXMLName(c byte) bool { return !isMark(c) || c == '_' || c == '-' || c == '.' }

// mentions reports whether text holds the name in some spelling, but for escapes, or an encoded word (RFC 2047).
func mentions(text []byte, want string) bool {
	if bytes.Contains(text, []byte("=?")) {
		return true
	}
	for i := range text {
		if beginsAlike(text[i:], want) || i+len(want) <= len(text) && bytes.EqualFold(text[i:i+len(want)], []byte(want)) {
			return true
		}
	}
	return false
}

// beginsAlike reports whether text begins with the name in any case, and whatever joins its words. Rack undoes escapes
// in the names of parts (goods\_id).
func beginsAlike(text []byte, want string) bool {
	for n := 0; len(want) > 0; n++ {
		for len(want) > 0 && isJoint(want[0]) {
			want = want[1:]
		}
		for n > 0 && n < len(text) && isJoint(text[n]) {
			n++
		}
		if len(want) == 0 {
			break
		}
		if n == len(text) || octets.Lower(text[n]) != octets.Lower(want[0]) {
			return false
		}
		want = want[1:]
	}
	return true
}

func isJoint(c byte) bool { return strings.IndexByte(`_-. [\`, c) >= 0 }

// sameInPHP compares names of one length for PHP, which makes "_" of dots, spaces and open brackets.
func sameInPHP(name []byte, want string) bool {
	for i := range len(want) {
		if fold(name[i]) != fold(want[i]) {
			return false
		}
	}
	return true
}

func fold(c byte) byte {
	if c == '.' || c == ' ' || c == '[' {
		return '_'
	}
	return c
}
