package layout

import (
	"fmt"
	"strings"
)

// template is a Redis key with holes for the SKU: parts joined by it. No parts mean that there is no key.
type template []string

// compile reads text, in which $sku is the SKU and $$ a dollar sign. name is the configuration's key.
func compile(name, prefix, text string) (template, error) {
	if text == "" {
		return nil, nil
	}
	t := template{prefix}
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "$")
		t[len(t)-1] += before
		switch {
		case !found:
			return t, nil
		case strings.HasPrefix(after, "sku"):
			t, rest = append(t, ""), after[len("sku"):]
		case strings.HasPrefix(after, "$"):
			t[len(t)-1] += "$"
			rest = after[1:]
		default:
			return nil, fmt.Errorf("%s %q: after a dollar sign only $sku and $$ are known", name, text)
		}
	}
}

// named reports whether the SKU is a part of the key.
func (t template) named() bool { return len(t) > 1 }

// of returns the key of one SKU.
func (t template) of(sku string) string { return strings.Join(t, sku) }

// pattern is what SCAN MATCH finds the keys by.
func (t template) pattern() string {
	quoted := make([]string, len(t))
	for i, part := range t {
		quoted[i] = globQuoter().Replace(part)
	}
	return strings.Join(quoted, "*")
}

func globQuoter() *strings.Replacer {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)
}

// sku is the inverse of of: the SKU that key belongs to.
func (t template) sku(key string) (string, bool) {
	holes := len(t) - 1
	fixed := 0
	for _, part := range t {
		fixed += len(part)
	}
	if holes < 1 || len(key) <= fixed || (len(key)-fixed)%holes != 0 {
		return "", false
	}
	first := len(t[0])
	sku := key[first : first+(len(key)-fixed)/holes]
	return sku, t.of(sku) == key
}
