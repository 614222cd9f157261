package script

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/redisconn"
)

func TestCompile_SaysWhatIsWrongAndHowToFixIt(t *testing.T) {
	own := func(change func(*Definition)) Definition {
		d := Definition{File: "shop/take.lua", Take: "return 1", Keys: []string{"s:$sku"},
			Codes: map[string]string{"1": "taken"}, GiveBack: "none"}
		change(&d)
		return d
	}
	keys := func(preset string, keys ...string) Definition { return Definition{Preset: preset, Keys: keys} }
	for _, c := range []struct {
		d    Definition
		says string
	}{
		{Definition{}, `stock.script.preset: is missing; write one of hash_ordered, `},
		{Definition{Preset: "lock", File: "take.lua"}, `stock.script.file: stands beside preset`},
		{Definition{Preset: "locks"}, `stock.script.preset: "locks" is not known; write one of hash_ordered, `},
		{keys("counter_codes", "stock"), `stock.script.keys: keys[1] "stock" has no $sku`},
		{keys("counter_codes", "$sku:$order"),
			`stock.script.keys: keys[1] "$sku:$order": after a dollar sign only $sku, $sku_1 to $sku_3, $serial, $user and`},
		{keys("counter_codes", "a:$sku", "b:$sku"), `stock.script.keys: has 2, and preset "counter_codes" takes 1`},
		{keys("hash_bought", "a:$sku", "b:$sku", "c:$sku"), `takes 1 to 2`},
		{keys("hash_bought", "a:$sku", "b:$sku"), `stock.script.args: has 0, and preset "hash_bought" with 2 keys takes 8`},
		{keys("counter_users", "$sku"), `has 1, and preset "counter_users" takes 2`},
		{keys("list_users", "$sku", "u"), `keys[2] "u" has no $sku`},
		{keys("hash_instock", "$sku", "m:$sku"), `keys[2] "m:$sku" has no $serial: all orders would share it`},
		{keys("hash_instock", "$sku", "m:$serial"), `keys[2] "m:$serial" has no $sku`},
		{keys("hash_instock", "$sku_1:$sku_2", "$sku_1:$serial"), `keys[2] "$sku_1:$serial": several SKUs would share it`},
		{keys("counter_codes", "{$sku_2}"), `keys[1] "{$sku_2}": several SKUs would share it`},
		{keys("counter_users", "stock:$sku_1", "uids:$sku_1:$sku_2"),
			`keys[2] "uids:$sku_1:$sku_2" names part 2 of the SKU, and the first key does not`},
		{keys("variants", "stock:$sku", "stock:$sku"), `keys[2] "stock:$sku" is there twice`},
		{Definition{Preset: "lock", Codes: map[string]string{"1": "taken"}},
			`stock.script.codes: are those of preset "lock"`},
		{Definition{Preset: "lock", Repeatable: true}, `stock.script.idempotent: is for a script of the shop's own`},
		{Definition{Preset: "lock", Args: []string{"$quantity", "2"}}, `stock.script.args: has 2, and preset "lock" takes 1`},
		{Definition{Preset: "lock", GiveBack: "locks"},
			`stock.script.release: "locks" is not known; write a file that ends in .lua, the name of a preset, or "none"`},
		{own(func(d *Definition) { d.Keys = nil }), `stock.script.keys: is missing`},
		{own(func(d *Definition) { d.Keys = []string{"s:$sku", ""} }), `stock.script.keys: keys[2] is empty`},
		{own(func(d *Definition) { d.Args = []string{"$what"} }), `stock.script.args: args[1] "$what": after a dollar sign`},
		{own(func(d *Definition) { d.Codes = nil }), `stock.script.codes: is missing`},
		{own(func(d *Definition) { d.GiveBack = "" }), `stock.script.release: is missing`},
		{own(func(d *Definition) { d.Codes = map[string]string{"0": "sold_out"} }),
			`stock.script.codes: no value means taken`},
		{own(func(d *Definition) { d.Codes["0"] = "soldout" }),
			`stock.script.codes: 0 = "soldout": write one of taken, sold_out, duplicate, busy, unknown_sku, paused`},
		{own(func(d *Definition) { d.Codes[">=x"] = "taken" }),
			`stock.script.codes: ">=x": write one code of this kind, with a whole number`},
		{own(func(d *Definition) { d.Codes["$user"] = "taken" }),
			`stock.script.codes: "$user": a code is a value, $quantity, >=N or <=N`},
	} {
		s, faults := Compile(c.d)
		var all []string
		for _, f := range faults {
			all = append(all, f.Error())
		}
		if s != nil || !strings.Contains(strings.Join(all, "\n"), c.says) {
			t.Errorf("%+v:\n%s\nwant %s", c.d, strings.Join(all, "\n"), c.says)
		}
	}
}

func TestCompile_EveryPresetStandsAlone(t *testing.T) {
	for _, name := range presetNames() {
		s := compiled(t, Definition{Preset: name})
		if s.Name() != name || len(s.Texts()) != 2 {
			t.Errorf("%s: %+v", name, s)
		}
		if p, ok := s.Promise(); !ok || p.Undersell == "" || p.DoubleBuying == "" || p.Repeatable == "" ||
			p.GiveBackTwice == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestCompile_KeysEndWhereTheShopSays(t *testing.T) {
	s := compiled(t, Definition{Preset: "hash_instock", Prefix: "p:",
		Keys: []string{"goods_$(sku)_stock", "mark_$(sku)_$(serial)s:$(user)"}})
	c := s.call(s.taking, &order{sku: "1001", serial: "abc", user: "7", quantity: 2, token: "T"})
	if got := fmt.Sprint(c.keys, c.args); got != "[p:goods_1001_stock p:mark_1001_abcs:7] [2 inStock T 86400]" {
		t.Error(got)
	}
}

func TestCodes_MeanWhatTheTableSays(t *testing.T) {
	c, errs := compileCodes(map[string]string{"$quantity": "taken", "0": "sold_out", "nil": "unknown_sku",
		"PAUSED": "paused", ">=100": "taken",
		"<=-2": "busy", "7": "duplicate"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, row := range []struct {
		reply any
		want  outcome
		known bool
	}{
		{int64(3), taken, true}, {int64(0), soldOut, true}, {nil, unknownSKU, true}, {"PAUSED", paused, true}, {int64(100),
			taken, true},
		{int64(500), taken, true}, {int64(-2), busy, true}, {int64(-9), busy, true}, {int64(7), duplicate,
			true}, {[]any{int64(3), "unit"}, taken, true},
		{[]any{}, unknownSKU, true}, {"3", taken, true},
		{int64(-1), unknown, false}, {int64(2), unknown, false}, {int64(99), unknown, false}, {"paused", unknown,
			false}, {"OK", unknown, false},
		{[]any{[]any{}}, unknown, false}, {true, unknown, false}, {1.5, unknown, false},
	} {
		if got, known := c.outcomeOf(row.reply, 3); got != row.want || known != row.known {
			t.Errorf("%v: %s %v", row.reply, got, known)
		}
	}
	for _, row := range []struct {
		reply any
		want  outcome
		known bool
	}{
		{int64(1), taken, true}, {int64(7), taken, true}, {"OK", taken, true}, {int64(0), soldOut, true}, {int64(-1),
			soldOut, true},
		{nil, soldOut, true}, {int64(-2), busy, true}, {[]any{int64(1)}, taken, true}, {"no", taken, false}, {1.5, unknown,
			false},
	} {
		if got, known := c.givenBack(row.reply, 3); known != row.known || known && got != row.want {
			t.Errorf("back %v: %s %v", row.reply, got, known)
		}
	}
}

// Requests have no SKU with braces; a mark whose SKU stands in braces belongs to one order.
func FuzzMarksOfTwoOrdersDiffer(f *testing.F) {
	f.Add("1001", "a", "1001", "b")
	f.Add("1:2", "a", "1", "2}:a")
	s := compiled(f, inStockShop().def)
	keys := func(sku, serial string) []string { return s.call(s.taking, &order{sku: sku, serial: serial}).keys }
	f.Fuzz(func(t *testing.T, sku1, serial1, sku2, serial2 string) {
		if strings.ContainsAny(sku1+sku2, "{}") || sku1 == sku2 && serial1 == serial2 {
			return
		}
		a, b := keys(sku1, serial1), keys(sku2, serial2)
		if a[1] == b[1] {
			t.Errorf("%q %q and %q %q share a mark", sku1, serial1, sku2, serial2)
		}
		if redistest.Slot(redisconn.Tag(a[1])) != redistest.Slot(redisconn.Tag(a[0])) && sku1 != "" {
			t.Errorf("%q %q leaves its slot", sku1, serial1)
		}
	})
}

func TestPresets_WrongKeysAreAnErrorAndNeverZeroOrPlenty(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	spoils := map[string]func(c *redis.Client, s shop){
		"another type": func(c *redis.Client, s shop) {
			for _, key := range c.Keys(background, "*").Val() {
				c.Del(background, key)
				c.ZAdd(background, key, redis.Z{Member: "a"})
			}
		},
		"no number": func(c *redis.Client, s shop) {
			for _, key := range c.Keys(background, "*").Val() {
				switch c.Type(background, key).Val() {
				case "string":
					c.Set(background, key, "1e9", 0)
				case "hash":
					for field := range c.HGetAll(background, key).Val() {
						if field != "goods_status" {
							c.HSet(background, key, field, "0x7fff")
						}
					}
				case "list":
					c.Del(background, key)
					c.Set(background, key, "no list", 0)
				}
			}
		},
	}
	for _, s := range shops() {
		for what, spoil := range spoils {
			t.Run(s.def.Preset+" "+what, func(t *testing.T) {
				r := redistest.Start(t)
				s.stock(t, r.Client, 5)
				spoil(r.Client, s)
				var said bytes.Buffer
				d := reserver(t, r.Addr, s.def, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) })
				before := fmt.Sprint(r.Client.Keys(background, "*").Val())
				for i := range 3 {
					if reason, _ := take(d, s.sku, fmt.Sprint(i), "", 1); reason != reject.StockError {
						t.Errorf("heard %s", reason)
					}
				}
				if n := strings.Count(said.String(), "orders of this SKU are rejected"); n != 1 {
					t.Errorf("said %d times: %s", n, said.String())
				}
				if after := fmt.Sprint(r.Client.Keys(background, "*").Val()); after != before {
					t.Errorf("keys were %s and are %s", before, after)
				}
			})
		}
	}
}

func TestPresets_WhatIsNotThereIsUnknownAndStaysSo(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			r := redistest.Start(t)
			d := reserver(t, r.Addr, s.def)
			if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.UnknownSKU {
				t.Errorf("heard %s", reason)
			}
			d.script.giveBack(background, d.way, []*order{{sku: s.sku, user: "7", serial: "a", quantity: 1, extra: []any{"u"}}})
			if keys := r.Client.Keys(background, "*").Val(); len(keys) != 0 {
				t.Errorf("%q were made", keys)
			}
		})
	}
}

func TestPresets_HashesWithoutTheirFieldsAreAnError(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, s := range []shop{hashOrderedShop(), hashBoughtShop()} {
		r := redistest.Start(t)
		s.stock(t, r.Client, 5)
		check(t, r.Client.HDel(background, "goods:{1001}",
			map[string]string{"hash_ordered": "ordered", "hash_bought": "goods_bought_num"}[s.def.Preset]).Err())
		d := reserver(t, r.Addr, s.def)
		if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.StockError {
			t.Errorf("%s: %s", s.def.Preset, reason)
		}
	}
}

func TestScript_IsKnownAgainAfterAFlush(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, s := range shops() {
		r := redistest.Start(t)
		s.stock(t, r.Client, 5)
		d := reserver(t, r.Addr, s.def)
		for i := range 3 {
			check(t, r.Client.ScriptFlush(background).Err())
			if reason, _ := take(d, s.sku, fmt.Sprint(i), "", 1); reason != reject.Admitted {
				t.Errorf("%s: %s", s.def.Preset, reason)
			}
		}
		if left := s.left(t, r.Client); left != 2 {
			t.Errorf("%s: %d left", s.def.Preset, left)
		}
	}
}

func TestHashInStock_MarksEnd(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := inStockShop(), redistest.Start(t)
	s.def.Args = []string{"$quantity", "inStock", "$token", "60"}
	s.stock(t, r.Client, 5)
	take(reserver(t, r.Addr, s.def), s.sku, "7", "key", 1)
	if ttl := r.Client.TTL(background, "mark:{1001}:key").Val().Seconds(); ttl <= 0 || ttl > 60 {
		t.Errorf("the mark ends in %v s", ttl)
	}
}
