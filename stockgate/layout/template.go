package layout

import (
	"fmt"
	"strings"
)

// template is a Redis key with holes for the SKU. No pieces mean that there is no key.
type template []piece

// piece is fixed text and the hole behind it.
type piece struct {
	text string
	hole int // noHole, all of the SKU, or its nth part
}

const (
	noHole = -1
	all    = 0
)

// mostParts is how many parts of a SKU a key may name, $sku_1 to $sku_3.
const mostParts = 3

// compile reads text, in which $sku is the SKU, $sku_1 its first part and $$ a dollar sign. name is the
// configuration's key.
func compile(name, prefix, text string) (template, error) {
	if text == "" {
		return nil, nil
	}
	t := template{{prefix, noHole}}
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "$")
		last := &t[len(t)-1]
		last.text += before
		switch {
		case !found:
			return t, nil
		case strings.HasPrefix(after, "sku"):
			last.hole, rest = hole(after[len("sku"):])
			t = append(t, piece{"", noHole})
		case strings.HasPrefix(after, "$"):
			last.text += "$"
			rest = after[1:]
		default:
			return nil, fmt.Errorf("%s %q: after a dollar sign only $sku, $sku_1 to $sku_3 and $$ are known", name, text)
		}
	}
}

// hole reads what may follow $sku: the number of a part.
func hole(after string) (hole int, rest string) {
	if len(after) >= 2 && after[0] == '_' && after[1] >= '1' && after[1] <= '0'+mostParts {
		return int(after[1] - '0'), after[2:]
	}
	return all, after
}

// named reports whether the SKU is a part of the key.
func (t template) named() bool { return len(t) > 1 }

// parts is the highest part of the SKU that the key names, 0 when it names none.
func (t template) parts() int {
	most := 0
	for _, p := range t {
		most = max(most, p.hole)
	}
	return most
}

// tells reports whether two SKUs of so many parts always have two keys: it names all of them, apart from each other.
// No part but the last has a colon, and no SKU of a request a brace.
func (t template) tells(parts int) bool {
	named := make(map[int]bool)
	for i, p := range t {
		named[p.hole] = true
		if parts > 1 && i > 0 && p.hole != noHole && !strings.ContainsAny(p.text, ":{}") {
			return false
		}
	}
	for n := 1; n <= parts; n++ {
		if !named[n] {
			return named[all]
		}
	}
	return parts > 0 || named[all]
}

// of returns the key of one SKU. The SKU's parts stand between colons, and the last of them takes the rest. A part
// that is not there is empty.
func (t template) of(sku string, parts int) string {
	named := strings.SplitN(sku, ":", max(parts, 1))
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.text)
		switch {
		case p.hole == all:
			b.WriteString(sku)
		case p.hole > all && p.hole <= len(named):
			b.WriteString(named[p.hole-1])
		}
	}
	return b.String()
}

// pattern is what SCAN MATCH finds the keys by.
func (t template) pattern() string {
	var b strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)
	for _, p := range t {
		b.WriteString(quote.Replace(p.text))
		if p.hole != noHole {
			b.WriteByte('*')
		}
	}
	return b.String()
}

// sku is the inverse of of: the SKU that key belongs to.
func (t template) sku(key string, parts int) (string, bool) {
	sku, found := t.whole(key)
	if parts > 0 && !found {
		sku = t.joined(key, parts)
	}
	return sku, sku != "" && t.of(sku, parts) == key
}

// whole finds the SKU of a key that names nothing but all of it, by the room that is left for it.
func (t template) whole(key string) (string, bool) {
	fixed, holes := 0, 0
	for _, p := range t {
		fixed += len(p.text)
		switch {
		case p.hole > all:
			return "", false
		case p.hole == all:
			holes++
		}
	}
	if holes < 1 || len(key) <= fixed || (len(key)-fixed)%holes != 0 {
		return "", true
	}
	first := len(t[0].text)
	return key[first : first+(len(key)-fixed)/holes], true
}

// joined finds the SKU of a key that names its parts; "" when there is none. It is for lists that a person asks for.
func (t template) joined(key string, parts int) string {
	named := make([]string, parts+1) // named[all] is all of it
	switch {
	case !t.splits(key, named):
		return ""
	case named[all] != "":
		return named[all]
	}
	return strings.Join(named[1:], ":")
}

// splits finds out what stands in each hole of key, in named. It tries the shortest first; what the key fixes between
// the holes leaves little to try.
func (t template) splits(key string, named []string) bool {
	p, last := t[0], len(named)-1
	key, ok := strings.CutPrefix(key, p.text)
	if !ok || p.hole == noHole {
		return ok && key == ""
	}
	before := named[p.hole]
	for end := 1; end <= len(key); end++ {
		if p.hole > all && p.hole < last && key[end-1] == ':' {
			break
		}
		if before != "" && before != key[:end] {
			continue
		}
		named[p.hole] = key[:end]
		if t[1:].splits(key[end:], named) {
			return true
		}
	}
	named[p.hole] = before
	return false
}
