package layout

import (
	"errors"
	"fmt"
	"strings"
)

// ErrApart is the cause when a cluster could have the keys of one SKU on different servers.
var ErrApart = errors.New("in a cluster all keys of a SKU must be in one slot")

// InOneSlot refuses a layout whose keys of one SKU may be in different slots of a cluster, and says which keys would
// work. tag is what of a key decides its slot.
func (l *Layout) InOneSlot(tag func(key string) string) error {
	if together(l.named, l.prefix, l.parts, tag) {
		return nil
	}
	better := make([]named, len(l.named))
	for i, k := range l.named {
		better[i] = named{k.name, tagged(k.text, variable(l.named))}
	}
	words := "give all of them the same part of the SKU in braces"
	if together(better, l.prefix, l.parts, tag) {
		var all []string
		for _, k := range better {
			all = append(all, fmt.Sprintf("%s = %q", k.name, k.text))
		}
		words = "the shop and Sluice both would have to use " + strings.Join(all, ", ")
	}
	return fmt.Errorf("%w: %s", ErrApart, words)
}

// named is a key as it is configured.
type named struct{ name, text string }

// keysOf are the configured keys of a SKU.
func keysOf(o Options) (all []named) {
	for _, k := range []named{{"key", o.Key}, {"status_key", o.StatusKey}, {"sold_out_flag", o.SoldOutFlag}, {"users_key", o.UsersKey}} {
		if k.text != "" {
			all = append(all, k)
		}
	}
	return all
}

// together reports whether keys always have one tag. A template is the same text around whatever SKU, so that a few
// SKUs show it: such with too few parts too. One with an empty part may still have an empty tag, and Redis then refuses
// to read its keys.
func together(keys []named, prefix string, parts int, tag func(string) string) bool {
	if len(keys) < 2 {
		return true
	}
	for _, sku := range []string{"1", "one:two", "one:two:three", "a:a:a"} {
		first := ""
		for i, k := range keys {
			t, err := compile(k.name, prefix, k.text)
			if err != nil {
				return false
			}
			switch found := tag(t.of(sku, parts)); {
			case i == 0:
				first = found
			case found != first:
				return false
			}
		}
	}
	return true
}

// variable is what of the SKU the first key names first.
func variable(keys []named) string {
	_, after, _ := strings.Cut(keys[0].text, "$sku")
	if n, _ := hole(after); n > all {
		return "$sku_" + string(rune('0'+n))
	}
	return "$sku"
}

// tagged is text with the first mention of a variable in braces, and no others.
func tagged(text, variable string) string {
	return strings.Replace(strings.NewReplacer("{", "", "}", "").Replace(text), variable, "{"+variable+"}", 1)
}
