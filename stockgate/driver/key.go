package driver

import (
	"fmt"
	"strings"
)

// piece is fixed text and the hole behind it.
type piece struct {
	text string
	hole hole
}

// hole is what stands in a key: nothing, all of the SKU, one of its parts, or the order.
type hole int

const (
	noHole hole = iota - 3
	serial
	user
	whole // then the parts
)

// mostParts is how many parts of a SKU a key may name.
const mostParts = 3

// template is a Redis key with holes. No pieces mean that there is no key.
type template []piece

// compile reads text. name is the configuration's key; only a mark may name the order.
func compile(name, prefix, text string) (template, error) {
	if text == "" {
		return nil, nil
	}
	t := template{{prefix, noHole}}
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
		if last.hole, rest = holeOf(after); last.hole == noHole || last.hole < whole && name != markName {
			return nil, fmt.Errorf("%s %q: after a dollar sign only $sku, $sku_1 to $sku_3 and $$ are known, and in %s $serial and $user", name, text, markName)
		}
		t = append(t, piece{"", noHole})
	}
}

const markName = "mark_key"

// holeOf reads the name of a hole.
func holeOf(after string) (h hole, rest string) {
	for name, h := range map[string]hole{"serial": serial, "user": user} {
		if rest, ok := strings.CutPrefix(after, name); ok {
			return h, rest
		}
	}
	after, ok := strings.CutPrefix(after, "sku")
	switch {
	case !ok:
		return noHole, after
	case len(after) >= 2 && after[0] == '_' && after[1] >= '1' && after[1] <= '0'+mostParts:
		return hole(after[1] - '0'), after[2:]
	}
	return whole, after
}

// parts is the highest part of the SKU that the key names.
func (t template) parts() int {
	most := 0
	for _, p := range t {
		most = max(most, int(p.hole))
	}
	return most
}

// names reports whether h stands in the key.
func (t template) names(h hole) bool {
	for _, p := range t {
		if p.hole == h {
			return true
		}
	}
	return false
}

// of returns the key of o.
func (t template) of(o *order, parts int) string {
	var b strings.Builder
	var named []string
	for _, p := range t {
		b.WriteString(p.text)
		switch {
		case p.hole == serial:
			b.WriteString(o.serial)
		case p.hole == user:
			b.WriteString(o.user)
		case p.hole == whole:
			b.WriteString(o.sku)
		case p.hole > whole:
			if named == nil {
				named = strings.SplitN(o.sku, ":", parts)
			}
			if int(p.hole) <= len(named) { // a part that is not there is empty
				b.WriteString(named[p.hole-1])
			}
		}
	}
	return b.String()
}
