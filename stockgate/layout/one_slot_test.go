package layout

import (
	"errors"
	"strings"
	"testing"
)

// tagOf is what of a key decides its slot, by the Redis Cluster Specification.
func tagOf(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

func TestOneSlot_KeysThatAClusterMayKeepApartAreRejectedWithThoseThatWork(t *testing.T) {
	for _, c := range []struct {
		o    Options
		says string // "" = they are together
	}{
		{Options{Type: Counter, Key: "stock:$sku"}, ""},
		{Options{Type: HashSold, Key: "$sku", TotalField: "t", SoldField: "s", StatusField: "on", StatusOpen: []string{"1"}},
			""},
		{Options{Type: CounterUsers, Key: "{$sku}:stock", UsersKey: "{$sku}:uids"}, ""},
		{Options{Type: CounterUsers, Key: "{$sku_1}:{$sku_2}:stock", UsersKey: "{$sku_1}:{$sku_2}:uids"}, ""},
		{Options{Type: CounterUsers, Key: "stock:$sku", UsersKey: "uids:$sku"},
			`key = "stock:{$sku}", users_key = "uids:{$sku}"`},
		{Options{Type: CounterUsers, Key: "$sku_1:$sku_2:stock", UsersKey: "$sku_1:$sku_2:uids"},
			`key = "{$sku_1}:$sku_2:stock", users_key = "{$sku_1}:$sku_2:uids"`},
		{Options{Type: Counter, Key: "stock:{$sku}", SoldOutFlag: "over:$sku"},
			`key = "stock:{$sku}", sold_out_key = "over:{$sku}"`},
		{Options{Type: Counter, Key: "stock:$sku", StatusKey: "shop:open", StatusOpen: []string{"1"}},
			"the same part of the SKU in braces"},
		{Options{Type: CounterUsers, Prefix: "{all}:", Key: "stock:$sku", UsersKey: "uids:$sku"}, ""},
	} {
		l, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		err = l.InOneSlot(tagOf)
		if c.says == "" && err != nil || c.says != "" &&
			(!errors.Is(err, ErrApart) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.says)
		}
	}
}

// What is accepted has all keys of any SKU that fits under one tag.
func FuzzInOneSlot(f *testing.F) {
	f.Add("stock:$sku", "uids:$sku", "", "1001")
	f.Add("{$sku_1}:{$sku_2}:s", "{$sku_1}:u", "p{", "a:b")
	f.Add("$sku}{$sku}", "{$sku}", "{}", "x")
	f.Add("{$sku_1}:{$sku_2}:s", "{$sku_1}:{$sku_2}:u", "", "a::b")
	f.Add("{$sku_1}:{$sku_2}:s", "{$sku_1}:{$sku_2}:u", "", ":")
	f.Fuzz(func(t *testing.T, key, users, prefix, sku string) {
		if strings.ContainsAny(sku, "{}") || sku == "" {
			return
		}
		l, err := New(Options{Type: CounterUsers, Key: key, UsersKey: users, Prefix: prefix})
		if err != nil || !l.Fits(sku) || l.InOneSlot(tagOf) != nil {
			return
		}
		if a, b := l.Key(sku), l.users.Of(sku, l.parts); tagOf(a) != tagOf(b) {
			t.Fatalf("%q and %q", a, b)
		}
	})
}
