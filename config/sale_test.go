package config

import (
	"fmt"
	"strings"
	"testing"
)

const twoSales = `[upstream]
targets = ["http://shop"]
[[route]]
name = "a"
match = "/{sku}"
gate = "reserve"
sku = "$path_sku"
[[sale]]
name = "one"
skus = ["1", "2"]
starts = 2026-11-11T00:00:00+08:00
ends = 2026-11-11T02:00:00+08:00
stock = { 1 = 5 }
[[sale]]
name = "two"
skus = ["3", "2"]
starts = 2026-11-10T18:00:00Z
ends = 2026-11-10T20:00:00Z
`

func TestSale_SKUIsInOneSaleAtATime(t *testing.T) {
	if _, err := Parse("c", []byte(twoSales), nil); err != nil {
		t.Errorf("one begins when the other ends: %v", err)
	}
	_, err := Parse("c", []byte(strings.Replace(twoSales, "18:00:00Z", "17:59:59Z", 1)), nil)
	want := `c:16: sale[2].skus[2]: "2" is in sale[1] ("one") too, at the same time; move one of the sales, or drop it ` +
		`here`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestSale_TimeWithoutOffsetIsRejected(t *testing.T) {
	_, err := Parse("c", []byte(strings.Replace(twoSales, "00:00:00+08:00", "00:00:00", 1)), nil)
	if err == nil || !strings.Contains(err.Error(), "c:11: sale[1].starts: ") {
		t.Errorf("%v", err)
	}
}

func TestSale_OnlyLedgersAreGivenStockAndReservingIsNeverEarly(t *testing.T) {
	early := strings.Replace(twoSales, `name = "two"`, "name = \"two\"\nbefore_start = \"pass\"", 1)
	for text, want := range map[string]string{
		strings.Replace(twoSales, `gate = "reserve"`, `gate = "check"`, 1): "c:13: sale[1].stock: is written into ledgers",
		early: "c:16: sale[2].before_start: \"pass\" lets early requests go on",
	} {
		if _, err := Parse("c", []byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What cannot be pushed is told before the night of the sale.
func TestSale_ListGetsNoMoreUnitsThanOnePushMayBring(t *testing.T) {
	of := func(units string) string {
		text := "name = \"shop\"\n" + strings.Replace(twoSales, `gate = "reserve"`, `gate = "check"`, 1)
		return strings.Replace(text, "{ 1 = 5 }", "{ 1 = "+units+" }", 1) +
			"[stock]\nsource = \"redis\"\n[stock.layout]\ntype = \"list\"\nkey = \"goods:$sku\"\n"
	}
	if _, err := Parse("c", []byte(of("100000")), nil); err != nil {
		t.Error(err)
	}
	_, err := Parse("c", []byte(of("100001")), nil)
	want := "c:14: sale[1].stock.1: 100001 units are too many for a list, which gets 100000 at most"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestSale_TimeFarAwayIsRejectedAndDoesNotWrapAround(t *testing.T) {
	for _, tt := range []struct{ old, year, want string }{
		{"2026-11-11T00:00:00+08:00", "2300", "c:11: sale[1].starts: 2300-11-11T00:00:00+08:00 is not a time of a sale; " +
			"write a year from 2000 to 2199"},
		{"2026-11-11T02:00:00+08:00", "9999", "c:12: sale[1].ends: 9999-11-11T02:00:00+08:00 is not a time of a sale; " +
			"write a year from 2000 to 2199"},
		{"2026-11-11T00:00:00+08:00", "1600", "c:11: sale[1].starts: 1600-11-11T00:00:00+08:00 is not a time of a sale; " +
			"write a year from 2000 to 2199"},
	} {
		_, err := Parse("c", []byte(strings.Replace(twoSales, tt.old, tt.year+tt.old[4:], 1)), nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("year %s: %v", tt.year, err)
		}
	}
}

func TestSale_UnitsOfAUserAreCountedWhereLedgersAre(t *testing.T) {
	limited := strings.Replace(twoSales, `name = "two"`, "name = \"two\"\nmax_per_user = 2", 1)
	if _, err := Parse("c", []byte(limited), nil); err != nil {
		t.Error(err)
	}
	many := strings.Repeat(`, "s"`, 64)
	for i := range 64 {
		many = strings.Replace(many, `"s"`, fmt.Sprintf(`"s%d"`, i), 1)
	}
	for text, want := range map[string]string{
		strings.Replace(limited, "max_per_user = 2", "max_per_user = -1",
			1): "c:16: sale[2].max_per_user: -1 must be from",
		strings.Replace(strings.Replace(limited, `gate = "reserve"`, `gate = "limit"`, 1), "stock = { 1 = 5 }\n", "",
			1): "c:15: sale[2].max_per_user: counts what ledgers have",
		strings.Replace(limited, `sku = "$path_sku"`, "sku = \"$path_sku\"\ndelivery = \"queue\"",
			1): "c:17: sale[2].max_per_user: is counted when units are reserved",
		strings.Replace(limited, `["3", "2"]`, `["3"`+many+"]",
			1): "c:16: sale[2].max_per_user: counts 65 SKUs",
	} {
		if _, err := Parse("c", []byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
