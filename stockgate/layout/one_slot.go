package layout

import (
	"errors"
	"fmt"
	"strings"
)

// ErrApart is the cause when a cluster could have the keys of one SKU on different servers.
var ErrApart = errors.New("in a cluster all keys of a SKU must be in one slot")

// NamedKey is a key as it is configured.
type NamedKey struct{ Name, Text string }

// oneSlot rejects keys of one SKU that may be in different slots of a cluster, and says which keys would work. tag is
// what of a key decides its slot.
func oneSlot(prefix string, keys []NamedKey, tag func(key string) string) error {
	if together(prefix, keys, tag) {
		return nil
	}
	better := make([]NamedKey, len(keys))
	for i, k := range keys {
		better[i] = NamedKey{k.Name, tagged(k.Text, variable(keys[0].Text))}
	}
	words := "give all of them the same part of the SKU in braces"
	if !strings.Contains(keys[0].Text, "$") {
		words = "give all of them the same text in braces, as in {seckill}:stocks and {seckill}:users:$sku"
	}
	if together(prefix, better, tag) {
		var all []string
		for _, k := range better {
			all = append(all, fmt.Sprintf("%s = %q", k.Name, k.Text))
		}
		words = "the shop and Sluice both would have to use " + strings.Join(all, ", ")
	}
	return fmt.Errorf("%w: %s", ErrApart, words)
}

// together reports whether keys always have one tag. A template is the same text around whatever SKU, so that a few
// SKUs show it: such with too few parts too.
func together(prefix string, keys []NamedKey, tag func(string) string) bool {
	all, parts := make([]KeyTemplate, len(keys)), 0
	for i, k := range keys {
		t, err := CompileKey(k.Name, prefix, k.Text)
		if err != nil {
			return false
		}
		all[i], parts = t, max(parts, t.Parts())
	}
	for _, sku := range []string{"1", "one:two", "one:two:three", "a:a:a"} {
		for _, t := range all[1:] {
			if tag(t.Of(sku, parts)) != tag(all[0].Of(sku, parts)) {
				return false
			}
		}
	}
	return true
}

// variable names what of the SKU a key mentions first: "sku", or one of its parts.
func variable(text string) string {
	_, after, _ := strings.Cut(text, "$")
	if n, _ := holeOf(after, nil); n > all && n <= MostParts {
		return "sku_" + string(rune('0'+n))
	}
	return "sku"
}

// tagged is text with the first mention of a variable in braces, and no others.
func tagged(text, variable string) string {
	text = strings.NewReplacer("{", "", "}", "").Replace(text)
	for _, mention := range []string{"$(" + variable + ")", "$" + variable} {
		if strings.Contains(text, mention) {
			return strings.Replace(text, mention, "{"+mention+"}", 1)
		}
	}
	return text
}

// InOneSlot rejects a layout whose keys of one SKU may be in different slots of a cluster, and says which keys would
// work. tag is what of a key decides its slot.
func (l *Layout) InOneSlot(tag func(key string) string) error {
	return oneSlot(l.prefix, l.named, tag)
}

// keysOf are the configured keys of a SKU.
func keysOf(o Options) (all []NamedKey) {
	for _, k := range []NamedKey{
		{Name: "key", Text: o.Key}, {Name: "status_key", Text: o.StatusKey}, {Name: "sold_out_key", Text: o.SoldOutFlag},
		{Name: "users_key", Text: o.UsersKey},
	} {
		if k.Text != "" {
			all = append(all, k)
		}
	}
	return all
}
