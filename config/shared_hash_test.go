package config

import (
	"strings"
	"testing"
)

func TestLayout_FieldsMayHaveTheSKUThatTheKeyHasNot(t *testing.T) {
	for text, want := range map[string]string{
		`type = "hash_left"` + "\n" + `key = "stocks"` + "\n" + `left_field = "$(sku)"`:      "",
		`type = "hash_left"` + "\n" + `key = "stocks"` + "\n" + `left_field = "left"`:        "all SKUs would share it",
		`type = "hash_left"` + "\n" + `key = "stocks"` + "\n" + `left_field = "$skew"`:       "$skew is not known",
		`type = "hash_left"` + "\n" + `key = "stocks"` + "\n" + `left_field = "$sku_left"`:   "write $(sku)_left",
		`type = "hash_sold"` + "\n" + `key = "stocks"` + "\n" + `total_field = "$(sku)_all"`: "write it like \"$(sku)_ordered\"",
		`type = "counter"` + "\n" + `key = "stocks"` + "\n" + `left_field = "$sku"`:          "all SKUs would share it",
	} {
		_, err := Parse("sluice.toml", []byte("[stock.layout]\n"+text), NoEnvironment)
		if want == "" && err != nil && strings.Contains(err.Error(), "stock.layout") ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s:\n%v\nwant %q", text, err, want)
		}
	}
}
