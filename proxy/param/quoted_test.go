package param

import (
	"slices"
	"testing"

	"sluice/proxy/reject"
)

func TestQuotedName_IsFoundAsItIsSpelled(t *testing.T) {
	const form = "order%5Bsku_id%5D=1001&order%5Bqty%5D=2"
	for _, c := range []struct{ variable, query, fields, body, want string }{
		{variable: `$form("order[sku_id]")`, fields: formType, body: form, want: "1001"},
		{variable: `$form('order[sku_id]')`, fields: formType, body: "order[sku_id]=1001", want: "1001"},
		{variable: `$(form_order[sku_id])`, fields: formType, body: form, want: "1001"},
		{variable: `$(form("order[sku_id]"))x`, fields: formType, body: form, want: "1001x"},
		{variable: `$form("order[qty]")-$form_a`, fields: formType, body: form + "&a=b", want: "2-b"},
		{variable: `$form("order[sku_id]")`, fields: formType, body: form + "&order[sku_id]=7",
			want: "ambiguous duplicate_key order[sku_id]"},
		{variable: `$form("order[sku_id]")`, fields: partType, body: named1("order[sku_id]", "1001"), want: "1001"},
		{variable: `$arg("a.b c")`, query: "a.b+c=1", want: "1"},
		{variable: `$(arg_a.b)`, query: "a.b=1", want: "1"},
		{variable: `$cookie("connect.sid")`, fields: "Cookie: connect=2; connect.sid=s%3A1\r\n", want: "s:1"},
		{variable: `$(cookie_connect.sid)`, fields: "Cookie: connect=2; connect.sid=1\r\n", want: "1"},
		{variable: `$cookie('__Host-a:b')`, fields: "Cookie: __Host-a:b=1\r\n", want: "1"},
		{variable: `$header("X-User")`, fields: "X-User: 7\r\n", want: "7"},
		{variable: `$http("X.User")`, fields: "X.User: 7\r\n", want: "7"},
		{variable: `$(http_x_user.id)`, fields: "X-User.Id: 7\r\n", want: "7"},
		{variable: `$json("a.b".c)`, fields: jsonType, body: `{"a.b":{"c":"1"},"a":{"b":{"c":2}}}`, want: "1"},
		{variable: `$json(items.0."sku id")`, fields: jsonType, body: `{"items":[{"sku id":1}]}`, want: "1"},
		{variable: `$json('商品'."编号")`, fields: jsonType, body: `{"商品":{"编号":1}}`, want: "1"},
		{variable: `$json("a")`, fields: jsonType, body: `{"a":1,"A":2}`, want: "ambiguous duplicate_key a"},
		{variable: `$json("a b")`, fields: formType, body: "a=1", want: `bad type_not_json $json("a b")`},
	} {
		if got := lookup(t, c.variable, c.query, c.fields, c.body); got != c.want {
			t.Errorf("%s: %q, want %q", c.variable, got, c.want)
		}
	}
	v := compile(t, `$jwt("https://shop.example/uid")$signed("connect.sid")`)
	if got := append(v.Names(Claim), v.Names(SignedCookie)...); !slices.Equal(got,
		[]string{"https://shop.example/uid", "connect.sid"}) {
		t.Errorf("%q", got)
	}
}

// named1 is a multipart form with one field.
func named1(name, value string) string { return form(named(`name="`+name+`"`, value)) }

func TestQuotedName_OfAListIsThatOfTheLinesOfACart(t *testing.T) {
	sku, quantity, err := CompileLines(`$json("order.items".*."sku.id")`, `$json("order.items".*.qty)`)
	if err != nil || !sku.IsList() || !quantity.IsList() {
		t.Fatal(err)
	}
	var got []string
	fault := sku.Each(newSource(t, jsonType, `{"order.items":[{"sku.id":"a"},{"sku.id":"b"}]}`), func(_ int, v []byte) bool {
		got = append(got, string(v))
		return true
	})
	if fault.Reason != reject.Admitted || !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got, fault)
	}
}

func TestQuotedName_MistakeIsNamedWithItsRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"$form_order[sku_id]": `$form_order[sku_id]: the name ends before "["; write $form("order[sku_id]"), or ` +
			`$(form_order)[sku_id] where the brackets are text`,
		"x$arg_a[b][c]d": `$arg_a[b][c]: the name ends before "["; write $arg("a[b][c]"), or $(arg_a)[b][c] where the ` +
			`brackets are text`,
		"$json_items[0].sku": `$json_items[0]: the path ends before "["; write $json_items.0, or $(json_items)[0] where the ` +
			`brackets are text`,
		"$(json_items[0])": `$json_items[0]: the path ends before "["; write $json_items.0, or $(json_items)[0] where the ` +
			`brackets are text`,
		"$json_a['b c']":       `$json_a['b c']: the path ends before "["; write it like $json("a"."b c"), with a dot before each key`,
		`$form("a`:             `"$form("a": a quote is not closed; write it like $form("x")`,
		`$form("a"`:            `"$form("a"": a ")" is missing behind the name; write it like $form("x")`,
		`$form("a".b)`:         `"$form("a".b)": a ")" is missing behind the name; write it like $form("x")`,
		`$json("a"b)`:          `"$json("a"b)": a ")" is missing behind the name; write it like $json("x"), and $json("a.b".c) with a dot between two`,
		`$json("a".)`:          `"$json("a".)": a name stands in quotes; write it like $json("a")`,
		`$form("")`:            `"$form("")": a name stands in quotes; write it like $form("x")`,
		"$cookie(connect.sid)": `"$cookie(connect.sid)": a name stands in quotes; write it like $cookie("connect.sid")`,
		`$query("a")`:          `$query(: unknown variable; write $arg("x")`,
		`$path("a")`:           `$path(: names in a pattern have letters, digits and _ alone; write $path_sku`,
		`$header("a b")`:       `$header("a b"): "a b" is not the name of a header; write letters, digits and -`,
		`$cookie("a=b")`:       `$cookie("a=b"): "a=b" is not the name of a cookie; write it without = ; , spaces and quotes`,
		`$(cookie_a;b)`:        `$cookie("a;b"): "a;b" is not the name of a cookie; write it without = ; , spaces and quotes`,
		"$form(\"a\tb\")":      `"$form(\"a\tb\")" has control characters, or is not UTF-8: write the name as the request has it`,
		`$(cookie("a")x)`:      `"$(cookie("a")x)": in the parentheses stands one name alone; write $cookie("a")x`,
		`$json(a.*."b")`:       `"$json(a.*.\"b\")": a star is for sku and quantity of gate "reserve"; write an index in its place`,
	} {
		if v, err := Compile(text, []string{"a"}); err == nil || err.Error() != want || !v.Empty() {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

func TestQuotedName_BracketsBehindParenthesesAreText(t *testing.T) {
	if got := lookup(t, "$(arg_a)[b]", "a=1", "", ""); got != "1[b]" {
		t.Error(got)
	}
	if got := lookup(t, "$remote_addr[$arg_a]", "a=1", "", ""); got != "203.0.113.9[1]" {
		t.Error(got)
	}
	if got := lookup(t, "$arg_a[$arg_a]", "a=1", "", ""); got != "1[1]" {
		t.Error(got)
	}
}

func TestQuotedName_MayHaveOperatorsInACondition(t *testing.T) {
	c, err := CompileCondition(`$jwt("a>=b")>=2`, nil)
	if err != nil || c.Variable().String() != `$jwt("a>=b")` || !c.MetBy([]byte("2")) || c.MetBy([]byte("1")) {
		t.Error(c.Variable(), err)
	}
}
