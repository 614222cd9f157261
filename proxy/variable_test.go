package proxy

import (
	"net/netip"
	"testing"
)

// A part that had to be decoded once stood twice in what was put together: the gate then judged another SKU than the
// one that the shop sells.
func TestValueOfSeveralPartsIsTheSameInEverySpelling(t *testing.T) {
	o := options(nil)
	o.Routes = []Route{
		{Name: "path", Match: "POST /p/{sale}/{sku}", Gate: Check, SKU: "$path_sale:$path_sku", User: "u-$cookie_uid-$path_sku"},
		{Name: "query", Match: "POST /q", Gate: Check, SKU: "s$arg_sale/$arg_sku", User: "$arg_sku$$$arg_sku"},
		{Name: "body", Match: "POST /j", Gate: Check, SKU: "$json_sale-$json_items.0.sku", User: "$json_sale"},
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	const cookie, json = " HTTP/1.1\r\nHost: s\r\nCookie: uid=7\r\n\r\n", " HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\nContent-Length: "
	for _, tt := range []struct{ raw, sku, user string }{
		{"POST /p/11/1001" + cookie, "11:1001", "u-7-1001"},
		{"POST /p/11/%31001" + cookie, "11:1001", "u-7-1001"},
		{"POST /p/%31%31/1001" + cookie, "11:1001", "u-7-1001"},
		{"POST /p/%31%31/%31%30%30%31" + cookie, "11:1001", "u-7-1001"},
		{"POST /q?sale=11&sku=1001" + cookie, "s11/1001", "1001$1001"},
		{"POST /q?sale=%31%31&sku=%31001" + cookie, "s11/1001", "1001$1001"},
		{"POST /j" + json + "42\r\n\r\n" + `{"sale":"11", "items":[ {"sku":"1001"} ] }`, "11-1001", "11"},
		{"POST /j" + json + "36\r\n\r\n" + `{"sale":11, "items":[ {"sku":1001}]}`, "11-1001", "11"},
	} {
		got := p.Explain(tt.raw, netip.MustParseAddr("203.0.113.9"), 16<<10)
		if got.Reason != Admitted || got.SKU != tt.sku || got.User != tt.user {
			t.Errorf("%q: SKU %q, user %q, %v; want %q and %q", tt.raw, got.SKU, got.User, got.Reason, tt.sku, tt.user)
		}
	}
}
