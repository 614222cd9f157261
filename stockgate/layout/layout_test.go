package layout

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestLayout_KeysAreBuiltAndTakenApart(t *testing.T) {
	for _, c := range []struct{ prefix, key, sku, want, pattern string }{
		{"", "seckill:stock:$sku", "1001", "seckill:stock:1001", "seckill:stock:*"},
		{"", "seckill:{$sku}:stock", "1001", "seckill:{1001}:stock", "seckill:{*}:stock"},
		{"", "$sku", "iphone", "iphone", "*"},
		{"laravel_database_", "$sku:stock", "7", "laravel_database_7:stock", "laravel_database_*:stock"},
		{"a*b[", "c?$sku", "7", "a*b[c?7", `a\*b\[c\?*`},
		{"", "$$$sku$$", "7", "$7$", "$*$"},
		{"", "{$sku}:$sku", "77", "{77}:77", "{*}:*"},
		{"$sku", ":$sku", "7", "$sku:7", "$sku:*"},
		{"", "goods_$sku_stock", "7", "goods_7_stock", "goods_*_stock"},
		{"", "{$sku_1}:{$sku_2}:stock", "7:88", "{7}:{88}:stock", "{*}:{*}:stock"},
		{"p:", "$sku_2:{$sku_1}:$sku_1", "7:88:9", "p:88:9:{7}:7", "p:*:{*}:*"},
		{"", "$sku_1-$sku", "7:8", "7:8-7:8", "*-*"},
		{"", "$sku_4", "7", "7_4", "*_4"},
	} {
		l, err := New(Options{Type: Counter, Key: c.key, Prefix: c.prefix})
		if err != nil {
			t.Fatalf("key %q: %v", c.key, err)
		}
		if got := l.Key(c.sku); got != c.want {
			t.Errorf("key %q of %q: %q, want %q", c.key, c.sku, got, c.want)
		}
		if sku, ok := l.SKU(c.want); !ok || sku != c.sku {
			t.Errorf("SKU of %q by key %q: %q, %v", c.want, c.key, sku, ok)
		}
		if got := l.Pattern(); got != c.pattern {
			t.Errorf("pattern of %q: %q, want %q", c.key, got, c.pattern)
		}
	}
}

func TestLayout_ForeignKeysHaveNoSKU(t *testing.T) {
	l, err := New(Options{Type: Counter, Key: "{$sku}:$sku"})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "{}:", "{7}:8", "{77}:7", "{7}:77", "x{7}:7", "{7}:7x"} {
		if sku, ok := l.SKU(key); ok {
			t.Errorf("%q is SKU %q", key, sku)
		}
	}
}

func TestLayout_LayoutsThatCannotWorkAreRejectedByName(t *testing.T) {
	good := Options{Type: HashSold, Key: "$sku", TotalField: "t", SoldField: "s"}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for names, change := range map[string]func(*Options){
		"type":                    func(o *Options) { o.Type = "lists" },
		"users_key":               func(o *Options) { o.Type = CounterUsers },
		"script_file":             func(o *Options) { o.Type = Script },
		"name all parts":          func(o *Options) { o.Key = "{$sku_2}:stock" },
		"colons or braces":        func(o *Options) { o.Key = "$sku_1-$sku_2" },
		"names part 2":            func(o *Options) { o.Key, o.UsersKey = "{$sku}", "{$sku_2}" },
		"must contain $sku":       func(o *Options) { o.Key = "stock" },
		`key ""`:                  func(o *Options) { o.Key = "" },
		`key "stock:$skew:$sku"`:  func(o *Options) { o.Key = "stock:$skew:$sku" },
		`sold_out_key "over$"`:    func(o *Options) { o.SoldOutFlag = "over$" },
		`status_key "$user"`:      func(o *Options) { o.StatusKey, o.StatusOpen = "$user", []string{"1"} },
		"total_field, sold_field": func(o *Options) { o.TotalField = "" },
		"sold_field":              func(o *Options) { o.SoldField = "" },
		"left_field":              func(o *Options) { o.Type = HashLeft },
		"only one": func(o *Options) {
			o.StatusKey, o.StatusField, o.StatusOpen = "$sku", "f", []string{"1"}
		},
		"has no hash":               func(o *Options) { o.Type, o.StatusField, o.StatusOpen = Counter, "f", []string{"1"} },
		`left_field "$skew"`:        func(o *Options) { o.Type, o.Key, o.LeftField = HashLeft, "all", "$skew" },
		`"s": it must contain $sku`: func(o *Options) { o.Key, o.TotalField = "all", "$sku" },
		"can be the same field":     func(o *Options) { o.Key, o.TotalField, o.SoldField = "all", "$sku", "$sku" },
		`status_field "$sku"`:       func(o *Options) { o.Type, o.LeftField, o.StatusField = HashLeft, "$sku", "$sku" },
		`left_field "$sku_2"`:       func(o *Options) { o.Type, o.Key, o.LeftField = HashLeft, "all", "$sku_2" },
		"status_open":               func(o *Options) { o.StatusField = "f" },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("want an error that names %q, got %v", names, err)
		}
	}
}

func TestLayout_SoldOutAtMovesTheEnd(t *testing.T) {
	for _, c := range []struct{ at, left, free int64 }{
		{0, 5, 5}, {5, 5, 0}, {5, 6, 1}, {-1, 0, 1}, {-1, -1, 0},
		{math.MinInt64, 1, math.MaxInt64}, {1, math.MinInt64, math.MinInt64},
	} {
		l, err := New(Options{Type: Counter, Key: "$sku", SoldOutAt: c.at})
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.count(nil, []any{strconv.FormatInt(c.left, 10)})
		if err != nil || r.Left != c.left || r.Free != c.free {
			t.Errorf("sold out at %d, %d left: %+v, %v; want %d free", c.at, c.left, r, err, c.free)
		}
	}
}

func TestLayout_TotalMinusSoldIsExactOrAFault(t *testing.T) {
	const most, least = math.MaxInt64, math.MinInt64
	for _, c := range []struct {
		total, sold, left int64
		ok                bool
	}{
		{500, 20, 480, true}, {5, 7, -2, true}, {5, -1, 6, true}, {0, 0, 0, true}, {most, most, 0, true},
		{least, least, 0, true}, {most, -1, 0, false}, {least, 1, 0, false}, {0, least, 0, false}, {-1, least, most, true},
	} {
		left, err := unsold([]int64{c.total, c.sold})
		if (err == nil) != c.ok || c.ok && left != c.left {
			t.Errorf("%d − %d: %d, %v; want %d", c.total, c.sold, left, err, c.left)
		}
	}
}

func FuzzUnitsAreWhatRedisWouldCount(f *testing.F) {
	for _, s := range []string{"0", "-0", "00", "-1", "+1", "1.0", " 1", "1e3", "9223372036854775807",
		"9223372036854775808", "", "١"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := units(s)
		if plain := isPlain(s); err == nil && !plain {
			t.Fatalf("%q was read as %d", s, n)
		} else if err != nil && plain && len(s) <= 18 {
			t.Fatalf("%q was rejected: %v", s, err)
		}
		if err == nil && strconv.FormatInt(n, 10) != s {
			t.Fatalf("%q was read as %d", s, n)
		}
	})
}

// isPlain says by hand what the grammar is: 0, or digits that begin with 1 to 9 behind at most one minus.
func isPlain(s string) bool {
	if s == "0" {
		return true
	}
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] == '0' {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

func FuzzEveryKeyGivesItsSKUBack(f *testing.F) {
	f.Add("p", "a$sku", "1001")
	f.Add("", "$sku{$sku}$$", "7")
	f.Add("", "{$sku_1}:{$sku_2}:$sku_1", "7:8:9")
	f.Add("", "$sku$sku_1", "00")
	f.Add("", "$sku:$sku_2", "00:0")
	f.Add("", "$sku:$sku_1:$sku_2", "a:b")
	f.Fuzz(func(t *testing.T, prefix, key, sku string) {
		l, err := New(Options{Type: Counter, Key: key, Prefix: prefix})
		if err != nil || sku == "" {
			return
		}
		if !l.Fits(sku) || l.parts > 0 && strings.ContainsAny(sku, "{}") {
			return // no SKU of such a shop
		}
		if got, ok := l.SKU(l.Key(sku)); !ok || got != sku {
			t.Fatalf("key %q of %q is %q, which gives back %q, %v", key, sku, l.Key(sku), got, ok)
		}
	})
}

func TestLayout_FieldBelongsToOneSKU(t *testing.T) {
	sold := Options{Type: HashSold, Key: "all", TotalField: "$sku", SoldField: "$(sku)_sold", StatusField: "status",
		StatusOpen: []string{"1"}}
	parts := Options{Type: HashLeft, Key: "act:$sku_1", LeftField: "good:$sku_2"}
	for _, c := range []struct {
		o          Options
		sku, field string
		fits       bool
	}{
		{sold, "1001", "1001", true}, {sold, "1001_sold", "1001_sold", false}, {sold, "status", "status", false},
		{sold, "_sold", "_sold", true}, {parts, "88:7", "good:7", true}, {parts, "88", "", false},
	} {
		l, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		if l.Fits(c.sku) != c.fits {
			t.Errorf("%+v: SKU %q fits: %v, want %v", c.o, c.sku, !c.fits, c.fits)
		}
		if sku, ok := l.SKUOfField(l.Key(c.sku), c.field); c.field != "" && (ok != c.fits || c.fits && sku != c.sku) {
			t.Errorf("%+v: field %q is of SKU %q, %v", c.o, c.field, sku, ok)
		}
	}
}
