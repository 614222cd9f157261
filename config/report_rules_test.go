package config

import (
	"slices"
	"testing"
)

func TestVariablesOf_NamesInParenthesesAndQuotes(t *testing.T) {
	for text, want := range map[string][]string{
		"a$sku-$(sku_1)x$$":              {"sku", "sku_1"},
		`$form("order[sku_id]")x`:        {`form("order[sku_id]")`},
		`$json(a."b)".c)$jwt('x"')`:      {`json(a."b)".c)`, `jwt('x"')`},
		`$(cookie_connect.sid)`:          {"cookie_connect.sid"},
		`$(cookie("connect.sid"))$host`:  {`cookie("connect.sid")`, "host"},
		`$jwt("a=b")>=2`:                 {`jwt("a=b")`},
		"$sku(x) $(sku":                  {"sku", ""},
		`$form("a`:                       {"form"},
		`{"a":"$message","b":"$sku(x)"}`: {"message", "sku"},
		"$":                              {""},
	} {
		if got := variablesOf(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestIsOf_ReadsBothFormsOfAName(t *testing.T) {
	for name, want := range map[string]bool{"jwt_sub": true, `jwt("sub")`: true, "jwt": false, "jwtx_sub": false} {
		if isOf(name, "jwt") != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
