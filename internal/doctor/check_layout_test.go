package doctor

import (
	"strings"
	"testing"

	"sluice/config"
)

func TestCheckLayout_CheckSaysWhatALayoutCostsAndCannotTell(t *testing.T) {
	for _, c := range []struct {
		layout, says string
		allow        bool
	}{
		{"type = \"counter\"", "", true},
		{"type = \"counter_users\"\nusers_key = \"u:$sku\"\nprefix = \"p:\"",
			"     buyers    requests that may go on otherwise ask whether their user is in p:u:$sku", false},
		{"type = \"list\"", "warn layout    after a restart", true},
		{"type = \"list\"", "", false},
		{"type = \"list\"\nsold_out_key = \"over:$sku\"", "", true},
		{"type = \"list\"\nsold_out_at = -1", "warn layout    stock.layout.sold_out_at is -1", false},
	} {
		unknown := "reject"
		if c.allow {
			unknown = "allow"
		}
		text := "upstream.targets = [\"http://127.0.0.1:9\"]\n[[route]]\nname = \"order\"\nmatch = \"/{sku}\"\ngate = " +
			"\"check\"\nsku = \"$path_sku\"\nuser = \"$cookie_u\"\n" +
			"[stock]\nsource = \"redis\"\nunknown_sku = \"" + unknown + "\"\n[stock.layout]\nkey = \"k:$sku\"\n" + c.layout
		parsed, err := config.Parse("config.toml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := examined(parsed, (*Report).checkLayout); !strings.HasPrefix(got, c.says) || c.says == "" && got != "" {
			t.Errorf("%s, unknown_sku %s: %q, want %q", c.layout, unknown, got, c.says)
		}
	}
}
