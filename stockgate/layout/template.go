package layout

import (
	"fmt"
	"slices"
	"strings"
)

// KeyTemplate is a Redis key with holes for the SKU and, where it was compiled so, other names. No pieces mean that
// there is no key. It is immutable.
type KeyTemplate []piece

// piece is fixed text and the hole behind it.
type piece struct {
	text string
	hole int // noHole, all of the SKU, its nth part, or others and more
}

const (
	noHole = -1
	all    = 0
	others = MostParts + 1 // the first of the names besides the SKU
)

// MostParts is how many parts of a SKU a key may name, $sku_1 to $sku_3.
const MostParts = 3

// CompileKey reads text behind a prefix, in which $sku or $(sku) is the SKU, $sku_1 its first part and $$ a dollar
// sign; more are the names of other holes. name is the configuration's key, for errors. Without text there is no key.
func CompileKey(name, prefix, text string, more ...string) (KeyTemplate, error) {
	if text == "" {
		return nil, nil
	}
	t := KeyTemplate{{prefix, noHole}}
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "$")
		last := &t[len(t)-1]
		last.text += before
		if !found {
			return t, nil
		}
		if strings.HasPrefix(after, "$") {
			last.text += "$"
			rest = after[1:]
			continue
		}
		if last.hole, rest = holeOf(after, more); last.hole == noHole {
			known := append([]string{"sku", "sku_1 to $sku_3"}, more...)
			return nil, fmt.Errorf("%s %q: after a dollar sign only $%s and $$ are known; $(sku)_x is $sku before _x", name,
				text,
				strings.Join(known, ", $"))
		}
		t = append(t, piece{"", noHole})
	}
}

// holeOf reads the name of a hole, which may stand in parentheses.
func holeOf(after string, more []string) (hole int, rest string) {
	if inner, ok := strings.CutPrefix(after, "("); ok {
		name, rest, closed := strings.Cut(inner, ")")
		if hole, left := holeOf(name, more); closed && left == "" && !strings.HasPrefix(name, "(") {
			return hole, rest
		}
		return noHole, after
	}
	for i, name := range more {
		if rest, ok := strings.CutPrefix(after, name); ok {
			return others + i, rest
		}
	}
	after, ok := strings.CutPrefix(after, "sku")
	switch {
	case !ok:
		return noHole, after
	case len(after) >= 2 && after[0] == '_' && after[1] >= '1' && after[1] <= '0'+MostParts:
		return int(after[1] - '0'), after[2:]
	}
	return all, after
}

// fitsParts reports whether a SKU has so many parts, none of them empty. Of others a key would be another SKU's, or
// have an empty tag, and with it leave its slot.
func fitsParts(sku string, parts int) bool {
	return parts < 2 || sku != "" && !slices.Contains(split(sku, parts), "") && strings.Count(sku, ":") >= parts-1
}

// split takes a SKU apart: its parts stand between colons, and the last takes the rest.
func split(sku string, parts int) []string { return strings.SplitN(sku, ":", max(parts, 1)) }

// Named reports whether the SKU, or one of its parts, stands in the key.
func (t KeyTemplate) Named() bool {
	return slices.ContainsFunc(t, func(p piece) bool { return p.hole > noHole && p.hole < others })
}

// Parts is the highest part of the SKU that the key names, 0 when it names none.
func (t KeyTemplate) Parts() int {
	most := 0
	for _, p := range t {
		if p.hole < others {
			most = max(most, p.hole)
		}
	}
	return most
}

// Tells reports whether two SKUs of so many parts always have two keys: it names all of them, apart from each other.
// No part but the last has a colon, and no SKU of a request a brace.
func (t KeyTemplate) Tells(parts int) bool {
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

// Of returns the key of one SKU, and of the other names in the order of Compile. A part that is not there is empty.
func (t KeyTemplate) Of(sku string, parts int, more ...string) string {
	var named []string
	if parts > 0 {
		named = split(sku, parts)
	}
	var b strings.Builder
	b.Grow(t.Length() + len(sku))
	for _, p := range t {
		b.WriteString(p.text)
		switch {
		case p.hole == noHole:
		case p.hole == all:
			b.WriteString(sku)
		case p.hole >= others:
			b.WriteString(more[p.hole-others])
		case p.hole <= len(named):
			b.WriteString(named[p.hole-1])
		}
	}
	return b.String()
}

// Apart reports whether no text is made by both templates, as their ends tell. False means that some may be.
func (t KeyTemplate) Apart(u KeyTemplate) bool {
	a, b := t[0].text, u[0].text
	if !strings.HasPrefix(a, b) && !strings.HasPrefix(b, a) {
		return true
	}
	a, b = t[len(t)-1].text, u[len(u)-1].text
	return !strings.HasSuffix(a, b) && !strings.HasSuffix(b, a)
}

// Length is that of the text that all keys have.
func (t KeyTemplate) Length() (n int) {
	for _, p := range t {
		n += len(p.text)
	}
	return n
}

// Pattern is what SCAN MATCH finds the keys by.
func (t KeyTemplate) Pattern() string {
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

// SKU is the inverse of Of: the SKU that key belongs to. It is for lists that a person asks for.
func (t KeyTemplate) SKU(key string, parts int) (string, bool) {
	named := make([]string, parts+1) // named[all] is all of it
	if !t.splits(key, named) {
		return "", false
	}
	sku := named[all]
	if sku == "" {
		sku = strings.Join(named[1:], ":")
	}
	return sku, sku != "" && t.Of(sku, parts) == key
}

// splits finds out what stands in each hole of key, in named. It tries the shortest first; what the key fixes between
// the holes leaves little to try.
func (t KeyTemplate) splits(key string, named []string) bool {
	p, last := t[0], len(named)-1
	key, ok := strings.CutPrefix(key, p.text)
	if !ok || p.hole == noHole {
		return ok && key == "" && agree(named)
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

// agree reports whether the parts that were found are those of the whole that was found.
func agree(named []string) bool {
	if named[all] == "" {
		return true
	}
	parts := split(named[all], len(named)-1)
	for i, found := range named[1:] {
		if found != "" && (i >= len(parts) || parts[i] != found) {
			return false
		}
	}
	return true
}
