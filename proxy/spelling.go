package proxy

import "unicode/utf8"

// Which spellings of a name a shop takes for the same depends on its language and its libraries. Where one is looked up,
// every one that some of them fold together counts.

// alias reports whether a framework could read key, of a query, form or cookie, as name: decoded, without letter case,
// with PHP's folding of " . [" into "_" and its arrays name[].
func alias(r *request, key []byte, name string) bool {
	if string(key) == name {
		return true
	}
	if len(key) < len(name) {
		return false
	}
	start := len(r.value)
	r.value = append(r.value, key...)
	k := unescape(r.value[start:start], r.value[start:])
	r.value = r.value[:start]
	for len(k) > 0 && (k[0] == ' ' || k[0] == '+') {
		k = k[1:]
	}
	for i, c := range k {
		if i > 0 && (c == '[' || c == 0) {
			k = k[:i]
			break
		}
	}
	for len(k) > 0 && len(name) > 0 {
		c, n := foldLetter(k)
		if foldName(c) != foldName(name[0]) {
			return false
		}
		k, name = k[n:], name[1:]
	}
	return len(k)+len(name) == 0
}

// sameMember reports whether a JSON library could take key for name: without letter case, without the "_" and "-" of
// naming styles (Alibaba's fastjson by default, Jackson by a strategy), or up to a NUL where strings end at one.
func sameMember(key []byte, name string) bool {
	if string(key) == name {
		return true
	}
	for i := 0; ; {
		c := byte(0)
		for len(key) > 0 && key[0] != 0 {
			folded, n := foldLetter(key)
			key = key[n:]
			if folded != '_' && folded != '-' {
				c = folded
				break
			}
		}
		for i < len(name) && (name[i] == '_' || name[i] == '-') {
			i++
		}
		if i == len(name) || c == 0 {
			return i == len(name) && c == 0
		}
		if c != lower(name[i]) {
			return false
		}
		i++
	}
}

// foldLetter is the first letter of b in lower case, and its length. The four letters that are not ASCII but fold into
// it do so (Unicode's CaseFolding.txt, and the upper and lower case of Java and Turkish); any other is 0xff.
func foldLetter(b []byte) (letter byte, n int) {
	if b[0] < utf8.RuneSelf {
		return lower(b[0]), 1
	}
	c, n := utf8.DecodeRune(b)
	switch c {
	case '\u017f': // long s
		return 's', n
	case '\u212a': // Kelvin
		return 'k', n
	case '\u0130', '\u0131': // dotted I, dotless i
		return 'i', n
	}
	return 0xff, n
}

func foldName(c byte) byte {
	switch c {
	case ' ', '+', '.', '[':
		return '_'
	}
	return lower(c)
}
