package param

import (
	"strings"
	"testing"

	"sluice/proxy/param/paramtest"
)

// A row that is ambiguous is rejected alone and beside the literal name; one that counts is the value alone, and
// ambiguous beside another one.
func TestVariable_ReadingsOfNamesAndPlaces(t *testing.T) {
	const beside = "goods_id=1"
	rows := 0
	ambiguous := func(got string) bool { return strings.HasPrefix(got, "ambiguous ") }
	check := func(row *paramtest.Row, find func(list string) string) {
		alone, with, before := find(row.Input), "", ""
		if separator := "&"; row.Kind == paramtest.CookieName {
			with, before = find(beside+"; "+row.Input), find(row.Input+"; "+beside)
		} else {
			with, before = find(beside+separator+row.Input), find(row.Input+separator+beside)
		}
		switch row.Decision {
		case paramtest.Counts:
			if alone != row.Reads || !ambiguous(with) || !ambiguous(before) {
				t.Errorf("%s: %s alone, %s and %s beside %s", row.Input, alone, with, before, beside)
			}
		case paramtest.Ambiguous:
			if !ambiguous(alone) || !ambiguous(with) || !ambiguous(before) {
				t.Errorf("%s: %s alone, %s and %s beside %s", row.Input, alone, with, before, beside)
			}
		default:
			if alone != "missing" || with != "1" || before != "1" {
				t.Errorf("%s: %s alone, %s and %s beside %s", row.Input, alone, with, before, beside)
			}
		}
	}
	for i := range paramtest.Readings {
		row := &paramtest.Readings[i]
		switch rows++; row.Kind {
		case paramtest.Name:
			check(row, func(list string) string { return lookup(t, "$arg_goods_id", list, "", "") })
			check(row, func(list string) string { return lookup(t, "$form_goods_id", "", formType, list) })
		case paramtest.CookieName:
			check(row, func(list string) string { return lookup(t, "$cookie_goods_id", "", "Cookie: "+list+"\r\n", "") })
		case paramtest.Place:
			query, body, _ := strings.Cut(row.Input, "\n")
			for _, variable := range []string{"$arg_goods_id", "$form_goods_id"} {
				got := elsewhere(t, variable, query, formType, body)
				if ambiguous(got) != (row.Decision == paramtest.Ambiguous) {
					t.Errorf("%s of %q: %s", variable, row.Input, got)
				}
			}
		case paramtest.JSONName:
			got := lookup(t, "$json_goods_id", "", jsonType, row.Input)
			if row.Decision == paramtest.Ambiguous && !ambiguous(got) || row.Decision == paramtest.LiteralOnly && got != row.Reads {
				t.Errorf("%s: %s", row.Input, got)
			}
			if within := lookup(t, "$json_a.goods_id", "", jsonType, `{"a":`+row.Input+`}`); within != got {
				t.Errorf("%s within an object: %s, want %s", row.Input, within, got)
			}
		case paramtest.JSONPlace:
			query, body, _ := strings.Cut(row.Input, "\n")
			for _, variable := range []string{"$arg_goods_id", "$json_goods_id"} {
				got := elsewhere(t, variable, query, jsonType, body)
				if ambiguous(got) != (row.Decision == paramtest.Ambiguous) {
					t.Errorf("%s of %q: %s", variable, row.Input, got)
				}
			}
		case paramtest.Index:
			if got := lookup(t, "$json_items.0.goods_id", "", jsonType, row.Input); !strings.HasPrefix(got, "bad ") {
				t.Errorf("%s: %s", row.Input, got)
			}
		default:
			rows--
		}
	}
	if rows < 25 {
		t.Errorf("only %d rows", rows)
	}
}
