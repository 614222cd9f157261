package script

import (
	"fmt"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

// What Redis itself would not count, or what Lua would round, is neither 0 nor plenty.
func TestPresets_NumbersThatAreNotPlainAreAnErrorAndStayWhole(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	values := []string{
		"007", "-0", "+5", " 5", "5 ", "5.0", "1e3", "0x10", "", "--1", "9223372036854775808", "99999999999999999999",
		"9007199254740993", "1000000000000000", "-1000000000000000", "\xac\xed\x00\x05t\x00\x015",
	}
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			if s.def.Preset == "list_users" {
				t.Skip("a list has a length")
			}
			r := redistest.Start(t)
			d := reserver(t, r.Addr, s.def)
			key, total := d.script.Keys(s.sku)[0], ""
			for _, value := range values {
				fields := [][2]string{{"", ""}}
				switch s.def.Preset {
				case "hash_ordered":
					total, fields = "total", [][2]string{{"total", "ordered"}, {"ordered", "total"}}
				case "hash_bought":
					total = "goods_count"
					fields = [][2]string{{total, "goods_bought_num"}, {"goods_bought_num", total}}
				case "hash_instock", "hash_instock_script":
					fields = [][2]string{{"inStock", ""}}
				}
				for _, f := range fields {
					check(t, r.Client.FlushAll(background).Err())
					if f[0] == "" {
						check(t, r.Client.Set(background, key, value, 0).Err())
					} else {
						check(t, r.Client.HSet(background, key, f[0], value).Err())
						if f[1] != "" {
							check(t, r.Client.HSet(background, key, f[1], 5, "goods_status", 1).Err())
						}
					}
					before := r.Client.Dump(background, key).Val()
					o := takeOne(d, &order{sku: s.sku, user: "7", serial: "k", quantity: 1, token: "mine"})
					if o.outcome != failed {
						t.Errorf("%s %q: %s %v", f[0], value, o.outcome, o.err)
					}
					if after := r.Client.Dump(background, key).Val(); after != before {
						t.Errorf("%s %q was changed", f[0], value)
					}
					if f[0] == total && total != "" {
						continue // no giving back asks for the total
					}
					d.script.giveBack(background, d.way, []*order{o})
					if after := r.Client.Dump(background, key).Val(); after != before {
						t.Errorf("%s %q was changed by giving back: %s", f[0], value, o.outcome)
					}
				}
			}
		})
	}
}

// Clients invent SKUs; Redis must not be filled with keys of them, and no invented SKU may be a key of a real one.
func TestPresets_InventedSKULeavesNoKeyBehind(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			r := redistest.Start(t)
			d := reserver(t, r.Addr, s.def)
			for i, sku := range []string{s.sku, s.sku + ":fence", ":", "a::b", "*", "[a-z]?", "\\", "$sku", "x:y:z"} {
				if reason, _ := take(d, sku, "7", fmt.Sprint("key-", i), 1); reason != reject.UnknownSKU {
					t.Errorf("%q: %s", sku, reason)
				}
			}
			if keys := r.Client.Keys(background, "*").Val(); len(keys) != 0 {
				t.Errorf("%q are left", keys)
			}
		})
	}
}
