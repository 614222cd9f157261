package param

import (
	"strings"
	"testing"
)

func TestQueryAndForm_AreReadInOneWayOrAmbiguous(t *testing.T) {
	for list, want := range map[string]string{
		"sku=7":                    "7",
		"a=b&sku=7%2D1&c":          "7-1",
		"sku=a+b%2Bc":              "a b+c",
		"%73ku=7":                  "7",
		"sku=%2531":                "%31",
		"&&sku=7&":                 "7",
		"sku=a=b":                  "a=b",
		"s+ku=1&sku=7":             "7",
		"skus=1&s_ku=3&s.ku=4":     "missing",
		"sku[]=2":                  "ambiguous name_spelling sku",
		"[sku]=2":                  "ambiguous name_spelling sku",
		"sku]=2":                   "ambiguous name_spelling sku",
		"sku.a=2":                  "ambiguous name_spelling sku",
		"sku=7&sku[]=7":            "ambiguous duplicate_key sku",
		"sku=7&sku%5Ba%5D=8":       "ambiguous duplicate_key sku",
		"sku=7&sku.a=8":            "ambiguous duplicate_key sku",
		"sku=7&+sku=8":             "ambiguous duplicate_key sku",
		"sku=7&+sku=7":             "7",
		"+sku=7":                   "7",
		"sku=7&sku=7":              "ambiguous duplicate_key sku", // a list of two to some readers
		"sku=7&skus[]=8&x[sku]=9":  "7",
		"SKU=7":                    "missing",
		"sku":                      "missing",
		"sku=":                     "missing",
		"":                         "missing",
		"sku=7&sku=8":              "ambiguous duplicate_key sku",
		"sku=7&SKU=8":              "ambiguous duplicate_key sku",
		"sku=7&%73ku=8":            "ambiguous duplicate_key sku",
		"sku=7&%c5%bfku=8":         "ambiguous duplicate_key sku", // long s
		"sku&sku=7":                "ambiguous duplicate_key sku",
		"Sku=7&SKU=8":              "ambiguous duplicate_key sku",
		"a=1;sku=7&sku=8":          "ambiguous duplicate_key sku",
		"a;sku=7":                  "ambiguous value_invalid $%s_sku",
		"sku=7;a":                  "ambiguous value_invalid $%s_sku",
		"sku=7;":                   "ambiguous value_invalid $%s_sku",
		"a=1;b=2&sku=7":            "7",
		"sku=%ff":                  "bad value_invalid $%s_sku",
		"sku=%e5%95%86":            "商",
		"a=%00&sku=7&a=%ff&b[=;&x": "7",
	} {
		for _, place := range []string{"arg", "form"} {
			query, fields, body := list, "", ""
			if place == "form" {
				query, fields, body = "", formType, list
			}
			want := strings.Replace(want, "%s", place, 1)
			if got := lookup(t, "$"+place+"_sku", query, fields, body); got != want {
				t.Errorf("%s %q: %s, want %s", place, list, got, want)
			}
		}
	}
}

func TestQueryAndForm_NameThatPHPFoldsCountsAsTheName(t *testing.T) {
	for list, want := range map[string]string{
		"goods_id=7&goods.id=8":         "ambiguous duplicate_key goods_id",
		"goods.id=8&goods_id=7":         "ambiguous duplicate_key goods_id",
		"goods_id=7&goods+id=8":         "ambiguous duplicate_key goods_id",
		"goods_id=7&goods%5bid=8":       "ambiguous duplicate_key goods_id",
		"goods_id=7&goods[id=8":         "ambiguous duplicate_key goods_id",
		"goods_id=7&++goods.id=8":       "ambiguous duplicate_key goods_id",
		"goods_id=7&goods_id[]=8":       "ambiguous duplicate_key goods_id",
		"goods_id=7&goods.id[]=8":       "ambiguous duplicate_key goods_id",
		"goods_id=7&goods.id=7":         "7",
		"goods.id=7":                    "7",
		"goods_id=7&goods[id]=8":        "7",
		"goods_id=7&goodsid=8&goods=9":  "7",
		"goods_id=7&goods_id_=8":        "7",
		"goods_id=7&goods_id%09=8":      "7",
		"goods_id=7&x.goods_id=8":       "7",
		"goods_id=7&goods-id=8":         "7",
		"goods_id=7&goods__id=8&.id=&.": "7",
	} {
		for _, place := range []string{"arg", "form"} {
			query, fields, body := list, "", ""
			if place == "form" {
				query, fields, body = "", formType, list
			}
			if got := lookup(t, "$"+place+"_goods_id", query, fields, body); got != want {
				t.Errorf("%s %q: %s, want %s", place, list, got, want)
			}
		}
	}
	const nul = "goods_id=7&goods_id%00x=8"
	if got := lookup(t, "$form_goods_id", "", formType, nul); got != "ambiguous duplicate_key goods_id" {
		t.Errorf("%q: %s", nul, got)
	}
}

func TestForm_WithABrokenEscapeIsAmbiguous(t *testing.T) {
	for _, body := range []string{"sku=1%", "sku=1&%u0073ku=2", "a=%4&sku=1", "%zz&sku=1"} {
		if got := lookup(t, "$form_sku", "", formType, body); got != "ambiguous body_not_form" {
			t.Errorf("%q: %s", body, got)
		}
	}
}

func TestLookup_IsOfOnePlace(t *testing.T) {
	const fields = "Cookie: sku=5\r\nSku: 6\r\n"
	for _, c := range []struct{ variable, fields, body, want string }{
		{"$arg_sku", formType, "sku=2", "1"},
		{"$arg_sku", jsonType, `{"sku":2}`, "1"},
		{"$arg_sku", "Content-Type: a b\r\nContent-Encoding: gzip\r\n", "\xff", "1"},
		{"$form_sku", formType, "sku=2", "2"},
		{"$json_sku", jsonType, `{"sku":2}`, "2"},
		{"$cookie_sku", formType, "sku=2", "5"},
		{"$http_sku", formType, "sku=2", "6"},
	} {
		if got := lookup(t, c.variable, "sku=1", fields+c.fields, c.body); got != c.want {
			t.Errorf("%s: %s, want %s", c.variable, got, c.want)
		}
	}
}
