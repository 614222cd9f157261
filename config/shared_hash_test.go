package config

import (
	"strings"
	"testing"
)

func TestLayout_FieldsMayHaveTheSKUThatTheKeyHasNot(t *testing.T) {
	for text, want := range map[string]string{
		`type = "hash_left"` + "\n" + `key = "stocks"` + "\n" + `left_field = "$(sku)"`:    "",
		`type = "hash_left"` + "\n" + `key = "stocks"` + "\n" + `left_field = "left"`:      "all SKUs would share it",
		`type = "hash_left"` + "\n" + `key = "stocks"` + "\n" + `left_field = "$skew"`:     "$skew is not known",
		`type = "hash_left"` + "\n" + `key = "stocks"` + "\n" + `left_field = "$sku_left"`: "write $(sku)_left",
		`type = "hash_sold"` + "\n" + `key = "stocks"` + "\n" +
			`total_field = "$(sku)_all"`: "write it like \"$(sku)_ordered\"",
		`key = "goods_$(sku)_stock"` + "\n" + `users_key = "$(sku)_users"`: "",
		`key = "goods_$sku_stock"`:   "write $(sku)_stock",
		`key = "goods_$(sku_stock"`:  "a ( without its ); write $sku, $(sku) before letters",
		`key = "goods_${sku}_stock"`: "$(sku) for a variable",
		`type = "counter"` + "\n" + `key = "stocks"` + "\n" + `left_field = "$sku"`: "all SKUs would share it",
	} {
		_, err := Parse("sluice.toml", []byte("[stock.layout]\n"+text), NoEnvironment)
		if want == "" && err != nil && strings.Contains(err.Error(), "stock.layout") ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s:\n%v\nwant %q", text, err, want)
		}
	}
}
