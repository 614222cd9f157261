package proxy

import (
	"net/netip"
	"strings"
	"testing"

	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/server"
	"sluice/stockgate/ledger"
)

func cartText(t *testing.T, body string, max int64) (string, param.Fault) {
	t.Helper()
	sku, quantity, err := param.CompileLines("$json_order.items.*.sku_id", "$json_order.items.*.qty")
	if err != nil {
		t.Fatal(err)
	}
	x, err := server.Read("POST / HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\n\r\n", netip.Addr{},
		server.Limits{Header: 16 << 10, Target: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	s := &param.Source{Head: x.Request(), Body: []byte(body), BodyRead: true}
	all, fault := findCart(&sku, &quantity, s, max)
	return string(appendCartText(nil, all)), fault
}

func TestCart_LinesAreSortedAndSummed(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"order":{"items":[{"sku_id":"b","qty":1},{"sku_id":"a","qty":"2"},{"sku_id":"b","qty":3,"x":{"sku_id":1}}]}}`,
			"a=2&b=4"},
		{`{"order":{"items":[{"sku_id":1001,"qty":1}]}}`, "1001=1"},
		{`{"order":{"items":[{"qty":1,"sku_id":"x=y&z"}, {"qty":9,"sku_id":"商品"}]}}`, "x%3Dy%26z=1&%E5%95%86%E5%93%81=9"},
	} {
		if got, fault := cartText(t, c.body, 10); got != c.want || fault.Reason != reject.Admitted {
			t.Errorf("%s: %s, %v", c.body, got, fault)
		}
	}
}

func TestCart_DigestIsOneCarts(t *testing.T) {
	line := func(sku string, n int64) ledger.Line { return ledger.Line{SKU: []byte(sku), Quantity: n} }
	seen := map[string]bool{}
	for _, c := range [][]ledger.Line{
		{line("a", 1), line("b", 1)},
		{line("a", 1), line("b", 2)},
		{line("a", 1), line("c", 1)},
		{line("a", 1), line("b", 1), line("c", 1)},
		{line("a", 1), line("b=1&c", 1)},
	} {
		d := cartDigest(c)
		if len(d) != 16 || strings.ContainsAny(d, "|/?") || seen[d] || d != cartDigest(c) {
			t.Errorf("%s: %q", appendCartText(nil, c), d)
		}
		seen[d] = true
	}
	if d := cartDigest([]ledger.Line{line("a", 1)}); d != "" {
		t.Errorf("an order of one SKU: %q", d)
	}
}

func TestCart_OrderThatCannotBeReadIsRejected(t *testing.T) {
	line := `{"sku_id":"a","qty":1}`
	many := strings.Repeat(line+",", 16) + line
	for _, c := range []struct {
		body   string
		reason reject.Reason
		cause  reject.Cause
	}{
		{`{"order":{"items":[]}}`, reject.BadRequest, reject.SKUMissing},
		{`{"order":{"items":{}}}`, reject.BadRequest, reject.SKUMissing},
		{`{"order":{}}`, reject.BadRequest, reject.SKUMissing},
		{`{"order":{"items":[` + line + `,7]}}`, reject.BadRequest, reject.SKUMissing},
		{`{"order":{"items":[{"sku_id":"a"}]}}`, reject.BadRequest, reject.QuantityMissing},
		{`{"order":{"items":[{"sku_id":"a","qty":0}]}}`, reject.BadRequest, reject.QuantityInvalid},
		{`{"order":{"items":[{"sku_id":"a","qty":11}]}}`, reject.BadRequest, reject.QuantityOverMax},
		{`{"order":{"items":[{"sku_id":"a","qty":1.5}]}}`, reject.BadRequest, reject.ValueInvalid},
		{`{"order":{"items":[{"sku_id":"a","qty":6},{"sku_id":"a","qty":5}]}}`, reject.BadRequest, reject.QuantityOverMax},
		{`{"order":{"items":[{"sku_id":"a b","qty":1}]}}`, reject.BadRequest, reject.SKUInvalid},
		{`{"order":{"items":[{"sku_id":"a","SKU_ID":"b","qty":1}]}}`, reject.Ambiguous, reject.DuplicateKey},
		{`{"order":{"items":[` + many + `]}}`, reject.BadRequest, reject.TooManyLines},
		{`{"order":`, reject.BadRequest, reject.BodyNotJSON},
	} {
		if _, fault := cartText(t, c.body, 10); fault.Reason != c.reason || fault.Detail.Cause != c.cause {
			t.Errorf("%.80s: %s %s, want %s %s", c.body, fault.Reason, fault.Detail.Cause, c.reason, c.cause)
		}
	}
}

func TestCart_ListsThatDoNotBelongTogetherAreErrors(t *testing.T) {
	for _, c := range [][2]string{{"$json_a.*.sku", "$json_b.*.qty"}, {"$json_a.*.sku", "1"},
		{"$path_sku", "$json_a.*.qty"}, {"x$json_a.*.sku", "$json_a.*.qty"}, {"$json_a.*", "$json_a.*.qty"},
		{"$json_a.*.b.*.sku", "$json_a.*.qty"}} {
		if _, _, err := param.CompileLines(c[0], c[1]); err == nil {
			t.Errorf("%q is no error", c)
		}
	}
	for _, text := range []string{"$json_a.*.sku", "u-$json_a.*.b"} {
		if _, err := param.Compile(text, nil); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}
