package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withScript is a configuration with the lines of [stock.script].
func withScript(script string, others ...string) string {
	lines := append([]string{"[[route]]", `name = "order"`, `match = "POST /{sku}"`, `gate = "reserve"`,
		`sku = "$path_sku"`, "[stock]", `source = "redis"`}, others...)
	return strings.Join(append(lines, "[stock.script]", script), "\n")
}

func TestScript_IsReadAsItIsWritten(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"take.lua": "return 1", "back.lua": "return 2"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(folder, "config.toml")
	text := whole(withScript(`file = "take.lua"
keys = ["goods_$(sku)_stock", "mark:$sku_1:$(serial)"]
args = ["$quantity", "$user", "$token", "$time", "total"]
codes = { 1 = "taken", -1 = "sold_out", ">=2" = "busy" }
release = "back.lua"`))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Stock.Script
	if !s.Used() || s.Take != "return 1" || s.Back != "return 2" || s.Codes["-1"] != "sold_out" ||
		s.Codes[">=2"] != "busy" || len(s.Args) != 5 {
		t.Errorf("%+v", s)
	}
}

func TestScript_MistakesNameTheirLineKeyAndWayOut(t *testing.T) {
	for _, m := range []mistake{
		{withScript(`preset = "watch"`, "reserve.status_url = \"http://shop/{serial}\"",
			"reserve.on_not_found = \"release_after_ttl\""),
			`:8: stock.reserve.status_url: is asked for orders that are kept, and a script keeps none; drop one of both, or ` +
				`write stock.script.ttl
:9: stock.reserve.on_not_found: is for orders that are kept, and a script keeps none; drop one of both, or write ` +
				`stock.script.ttl`},
		{withScript("preset = \"watch\"\nttl = \"15m\""),
			`:10: stock.script.ttl: gives back what the shop says it does not know: write stock.reserve.status_url, and ` +
				`on_not_found = "release_after_deadline", "cancel_then_release" or "release_after_ttl"`},
		{withScript("preset = \"watch\"\nrelease = \"none\"\nttl = \"15m\""),
			`:11: stock.script.ttl: gives back what is not confirmed in time, but release is "none"; drop one of both`},
		{withScript("preset = \"watch\"\nttl = \"10ms\""),
			`:10: stock.script.ttl: is shorter than 1s; write how long an order may take until it is paid, like "15m"`},
		{"[stock.script]\npreset = \"watch\"",
			`:1: stock.script: a script runs in Redis, but stock.source is "memory"; write source = "redis"`},
		{withScript(`keys = ["stock:$sku"]`),
			`:8: stock.script: names no script; write preset = "counter_codes" or file = "take.lua" into it, or drop it`},
		{withScript("preset = \"lock\"\nkeys = [\n\"goods_$sku_stock\",\n\"lock:$skuu\"]\nargs = [\"$order\"]"),
			`:11: stock.script.keys[1]: $sku_stock is not known; where a name ends before its word does, write $(sku)_stock
:12: stock.script.keys[2]: $skuu is not known; did you mean $sku?
:13: stock.script.args[1]: $order is not known; here may stand $sku $sku_1 $sku_2 $sku_3 ` +
				`$serial $user $quantity $token $time, and $$ for a dollar sign`},
	} {
		_, err := Parse("config.toml", []byte(whole(m.text)), nil)
		if err == nil {
			t.Errorf("accepted:\n%s", m.text)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), "config.toml", ""); got != m.want {
			t.Errorf("\n%s\n got %s\nwant %s", m.text, got, m.want)
		}
	}
}

func TestReplacedKeys_NameTheNewOne(t *testing.T) {
	for old, want := range map[string]string{
		`driver = "counter_users"`:       `driver: is now [stock.script]: write preset = "counter_users" there`,
		`lock_key = "lock:$sku"`:         `lock_key: is now the second of keys in [stock.script], for preset "lock"`,
		`parent_key = "stock:$sku_1"`:    `parent_key: is now the second of keys in [stock.script], for preset "variants"`,
		`orders_key = "orders:$sku"`:     `orders_key: is now the second of keys in [stock.script], for preset "hash_bought"`,
		`mark_key = "mark:$sku:$serial"`: `mark_key: is now the second of keys in [stock.script], for preset "hash_instock"`,
		`mark_ttl = "1h"`:                `mark_ttl: is now the fourth of args in [stock.script], in seconds, for`,
	} {
		_, err := Parse("config.toml", []byte(whole("[stock.layout]\n"+old)), nil)
		if err == nil || !strings.Contains(err.Error(), "config.toml:2: stock.layout."+want) {
			t.Errorf("%s: %v", old, err)
		}
	}
}
