package layout

import (
	"fmt"
	"strings"
	"testing"
)

func Example() {
	stock, err := CompileKey("key", "shop:", "{$sku_1}:$sku_2:stock")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(stock.Of("good:activity", stock.Parts()))
	fmt.Println(fitsParts("good", stock.Parts()))
	// Output:
	// shop:{good}:activity:stock
	// false
}

func TestKey_OnlyASKUWithAllItsPartsFits(t *testing.T) {
	for _, c := range []struct {
		sku   string
		parts int
		fits  bool
	}{
		{"1001", 0, true}, {":", 0, true}, {":", 1, true}, {"a:b", 1, true},
		{"a:b", 2, true}, {"a:b:c", 2, true}, {"a::", 2, true}, {"a::b", 2, true},
		{"a", 2, false}, {"a:", 2, false}, {":b", 2, false}, {":", 2, false}, {"::", 2, false}, {"", 2, false},
		{"a:b", 3, false}, {"a:b:", 3, false}, {"a::c", 3, false}, {"a:b:c", 3, true},
	} {
		if got := fitsParts(c.sku, c.parts); got != c.fits {
			t.Errorf("%q of %d parts: %v", c.sku, c.parts, got)
		}
	}
}

func TestKey_OtherNamesStandWhereTheyAreCompiledIn(t *testing.T) {
	mark, err := CompileKey("mark_key", "", "m:{$sku}:$user:$serial", "serial", "user")
	if err != nil || !mark.Named() || mark.Parts() != 0 {
		t.Fatalf("%v %+v", err, mark)
	}
	if got := mark.Of("1001", 0, "k", "7"); got != "m:{1001}:7:k" {
		t.Error(got)
	}
	if _, err := CompileKey("key", "", "$serial"); err == nil || !strings.Contains(err.Error(),
		`key "$serial": after a dollar sign only $sku, $sku_1 to $sku_3 and $$ are known`) {
		t.Error(err)
	}
	if other, _ := CompileKey("key", "", "$serial", "serial"); other.Named() {
		t.Error("an order is taken for a SKU")
	}
}

func TestTemplate_ParenthesesEndAName(t *testing.T) {
	for text, want := range map[string]string{
		"goods_$(sku)_stock": "goods_a:b_stock", "{$(sku_1)}1": "{a:b}1",
		"$(sku_2)$(serial)x": "bSx", "$$(sku)": "$(sku)", "$sku_": "a:b_",
	} {
		k, err := CompileKey("key", "", text, "serial", "user")
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := k.Of("a:b", k.Parts(), "S", "U"); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"$(sku", "$(skus)", "$()", "$((sku))", "$(other)"} {
		if _, err := CompileKey("key", "", text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestOneSlot_ProposesTagsForNamesInParentheses(t *testing.T) {
	keys := []NamedKey{{"keys[1]", "goods_$(sku)_stock"}, {"keys[2]", "users_$sku"}}
	tag := func(key string) string {
		if _, after, ok := strings.Cut(key, "{"); ok {
			tag, _, _ := strings.Cut(after, "}")
			return tag
		}
		return key
	}
	err := oneSlot("", keys, tag)
	if err == nil || !strings.Contains(err.Error(), `keys[1] = "goods_{$(sku)}_stock", keys[2] = "users_{$sku}"`) {
		t.Error(err)
	}
}

// FuzzTwoSKUsThatAreToldApartShareNoKey tries what Tells promises of SKUs that fit and have no braces.
func FuzzTwoSKUsThatAreToldApartShareNoKey(f *testing.F) {
	f.Add("$sku_2:{$sku_1}", "a:b:c", "a:b")
	f.Add("$sku:$sku_1:$sku_2", "a:a:a", "a:a")
	f.Add("{$sku_1}:{$sku_2}:stock", "a:", "a")
	f.Add("$sku_2x:y$sku_1", "a:b", "yb:a")
	f.Fuzz(func(t *testing.T, text, one, two string) {
		k, err := CompileKey("key", "", text)
		if err != nil || k == nil {
			return
		}
		n := k.Parts()
		if !k.Tells(n) || one == two || one == "" || two == "" || !fitsParts(one, n) || !fitsParts(two, n) ||
			strings.ContainsAny(one+two, "{}") {
			return
		}
		if k.Of(one, n) == k.Of(two, n) {
			t.Fatalf("%q: %q and %q share %q", text, one, two, k.Of(one, n))
		}
	})
}
