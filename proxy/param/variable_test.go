package param

import (
	"fmt"
	"slices"
	"testing"

	"sluice/proxy/reject"
)

func TestCompile_RejectsWhatItDoesNotUnderstand(t *testing.T) {
	const unknown = ": unknown variable; one of $remote_addr $host $request_id $path_x $arg_x $cookie_x " +
		"$http_x $form_x $json_x $jwt_x $signed_x"
	for text, want := range map[string]string{
		"$":           `a "$" without a name; write "$$" for a dollar sign`,
		"a$ b":        `a "$" without a name; write "$$" for a dollar sign`,
		"$(arg_sku":   `"$(arg_sku": a ")" is missing; write it like $(arg_sku)`,
		"$()":         `a "$" without a name; write "$$" for a dollar sign`,
		"$(arg_a b)":  `"$(arg_a b)": in the parentheses stands one name alone; write it like $(arg_a) b`,
		"$(sku)_x":    "$sku: unknown variable; write $path_sku",
		"$arg_":       "$arg_: a name is missing",
		"$path_sale":  "$path_sale: the pattern has no {sale}: write {sale} into match, or another variable",
		"$remote_add": "$remote_add: unknown variable; did you mean $remote_addr?",
		"$from_sku":   "$from_sku: unknown variable; did you mean $form_sku?",
		"$jsn_a.0.id": "$jsn_a.0.id: unknown variable; did you mean $json_a.0.id?",
		"$foo":        "$foo" + unknown,
		"$foo_sku":    "$foo_sku" + unknown,
		"$arg":        "$arg" + unknown,
		"x$qery_sku":  "$qery_sku" + unknown,
		"$cokie_uid":  "$cokie_uid: unknown variable; did you mean $cookie_uid?",
		"$arg_sku ":   `"$arg_sku " begins or ends with a space: write "$arg_sku"`,
		"$query_sku":  "$query_sku: unknown variable; write $arg_sku",
		"$sku":        "$sku: unknown variable; write $path_sku",
		"$json.id":    "$json.id: unknown variable; write $json_id",
		"$body.a.id":  "$body.a.id: unknown variable; write $json_a.id",
		"json_id":     `"json_id" is the same for every request: write "$json_id"`,
		"{json_id}":   `"{json_id}" is the same for every request: write "$json_id"`,
		"cookie_uid":  `"cookie_uid" is the same for every request: write "$cookie_uid"`,
		"remote_addr": `"remote_addr" is the same for every request: write "$remote_addr"`,
		"sku":         `"sku" is the same for every request: write "$path_sku"`,
		"{sku}":       `"{sku}" is the same for every request: write "$path_sku"`,
		":sku":        `":sku" is the same for every request: write "$path_sku"`,
		"json.id":     `"json.id" is the same for every request: write "$json_id"`,
		"%{id}":       `"%{id}" is the same for every request: write a variable` + unknown[len(": unknown variable"):],
	} {
		if v, err := Compile(text, []string{"sku"}); err == nil || err.Error() != want || !v.Empty() {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestCompile_SplitsReferencesAndLiterals(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		"1":                          {"0 1"},
		"json":                       {"0 json"},
		"phone_64":                   {"0 phone_64"},
		"a$$b":                       {"0 a$b"},
		"$host-$arg_x":               {"2 $host", "0 -", "5 $arg_x"},
		"$path_sku$path_sku":         {"4 $path_sku", "4 $path_sku"},
		"$json_a.0.b-c.":             {"9 $json_a.0.b-c", "0 ."},
		"$cookie_a-b.c":              {"6 $cookie_a-b", "0 .c"},
		"$remote_addr/$http_x_user-": {"1 $remote_addr", "0 /", "7 $http_x_user", "0 -"},
		"$request_id$jwt_sub":        {"3 $request_id", "10 $jwt_sub"},
		"$form__method $signed_u":    {"8 $form__method", "0  ", "11 $signed_u"},
	} {
		v := compile(t, text, "sale", "sku")
		var got []string
		for i := range v.Parts() {
			p := &v.Parts()[i]
			got = append(got, fmt.Sprint(p.Kind(), " ", p.Text()))
		}
		if !slices.Equal(got, want) || v.String() != text || v.Empty() != (want == nil) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestVariable_KnowsWhatItUses(t *testing.T) {
	for _, c := range []struct {
		text                 string
		body, proven, fixed  bool
		headers, claims, all string
	}{
		{text: "2", fixed: true},
		{text: "$arg_a-$cookie_b"},
		{text: "$json_a", body: true},
		{text: "x$form_a", body: true},
		{text: "u-$jwt_sub$jwt_iss", proven: true, claims: "[sub iss]"},
		{text: "$signed_u", proven: true},
		{text: "$http_x_user", headers: "[x-user]"},
	} {
		v := compile(t, c.text)
		names := func(kind Kind) string {
			if n := v.Names(kind); n != nil {
				return fmt.Sprint(n)
			}
			return ""
		}
		if v.NeedsBody() != c.body || v.Proven() != c.proven || v.Fixed() != c.fixed ||
			names(Header) != c.headers || names(Claim) != c.claims || v.Uses(Claim) != (c.claims != "") {
			t.Errorf("%s: body %v, proven %v, fixed %v, headers %s, claims %s", c.text, v.NeedsBody(), v.Proven(), v.Fixed(),
				names(Header), names(Claim))
		}
	}
}

// A part that is decoded lies in the same room as the value that is put together.
func TestVariable_SeveralPartsAreTheSameInEverySpelling(t *testing.T) {
	for _, c := range []struct {
		text, query, body string
		captures          [2]string
		want              string
	}{
		{"$path_sale:$path_sku", "", "", [2]string{"11", "1001"}, "11:1001"},
		{"$path_sale:$path_sku", "", "", [2]string{"11", "%31001"}, "11:1001"},
		{"$path_sale:$path_sku", "", "", [2]string{"%31%31", "1001"}, "11:1001"},
		{"$path_sale:$path_sku", "", "", [2]string{"%31%31", "%31%30%30%31"}, "11:1001"},
		{"s$arg_sale/$arg_sku", "sale=11&sku=1001", "", [2]string{}, "s11/1001"},
		{"s$arg_sale/$arg_sku", "sale=%31%31&sku=%31001", "", [2]string{}, "s11/1001"},
		{"$arg_sku$$$arg_sku", "sku=%31001", "", [2]string{}, "1001$1001"},
		{"$json_sale-$json_items.0.sku", "", `{"sale":"11", "items":[ {"sku":"1001"} ] }`, [2]string{}, "11-1001"},
		{"$json_sale-$json_items.0.sku", "", `{"sale":1\u0031, "items":[]}`, [2]string{}, "bad body_not_json $json_sale"},
		{"$json_sale-$json_items.0.sku", "", `{"sale":"1\u0031","items":[{"sku":"\u0031001"}]}`, [2]string{}, "11-1001"},
		{"u-$cookie_uid-$remote_addr@$host", "", "", [2]string{}, "u-7-203.0.113.9@shop"},
		{"$request_id", "", "", [2]string{}, "r-1"},
		{"$path_sale$arg_sku", "", "", [2]string{"11", ""}, "missing"},
		{"$path_sale", "", "", [2]string{"%ff", ""}, "bad value_invalid $path_sale"},
		{"$path_sale", "", "", [2]string{"a+b", ""}, "a+b"},
		{"", "", "", [2]string{}, "missing"},
	} {
		s := newSource(t, "Cookie: uid=%37\r\n"+jsonType, c.body)
		s.Query, s.Captures = []byte(c.query), [][]byte{[]byte(c.captures[0]), []byte(c.captures[1])}
		v := compile(t, c.text, "sale", "sku")
		first, fault := v.Value(s)
		if got := result(first, fault); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
		if again, _ := v.Value(s); string(again) != string(first) || result(first, fault) != c.want {
			t.Errorf("%s: the second lookup finds %q, and the first value is now %q", c.text, again, first)
		}
	}
}

func TestSource_ResetForgetsTheRequest(t *testing.T) {
	s := newSource(t, jsonType, `{"sku":"\u0031"}`)
	v := compile(t, "$json_sku")
	if got := result(v.Value(s)); got != "1" {
		t.Fatal(got)
	}
	head := s.Head
	s.Reset()
	s.Head, s.Body, s.BodyRead = head, []byte("{"), true
	if got := result(v.Value(s)); got != "bad body_not_json $json_sku" {
		t.Errorf("after Reset: %s", got)
	}
	s.room, s.scratch = make([]byte, maxKeptRoom+1), make([]byte, maxKeptRoom+1)
	if s.Reset(); s.room != nil || s.scratch != nil {
		t.Error("Reset keeps large buffers")
	}
}

func TestSource_BodyThatWasNotReadIsNotLookedInto(t *testing.T) {
	s := newSource(t, jsonType, `{"sku":"1"}`)
	s.BodyRead = false
	v := compile(t, "$json_sku")
	if got := result(v.Value(s)); got != "bad body_not_json $json_sku" {
		t.Error(got)
	}
	s.BodyRead = true
	if got := result(v.Value(s)); got != "1" {
		t.Error(got)
	}
}

// stubTokens proves the user 7 by the claim sub, and nothing by cookies.
type stubTokens struct{}

func (stubTokens) Claim(s *Source, name string) ([]byte, Fault) {
	if name != "sub" {
		return nil, Fault{}
	}
	return s.Header("authorization")
}

func (stubTokens) SignedCookie(*Source, string) ([]byte, Fault) { return nil, Fault{} }

func TestSource_AsksTokensForWhatIsProven(t *testing.T) {
	for _, c := range []struct{ variable, fields, want string }{
		{"u-$jwt_sub", "Authorization: 7\r\n", "u-7"},
		{"u-$jwt_iss", "Authorization: 7\r\n", "missing"},
		{"u-$jwt_sub", "Authorization: 7\r\nAuthorization: 8\r\n", "ambiguous duplicate_key authorization"},
		{"$signed_u", "Cookie: u=7\r\n", "missing"},
	} {
		s := newSource(t, c.fields, "")
		v := compile(t, c.variable)
		if got := result(v.Value(s)); got != "missing" {
			t.Errorf("%s without Tokens: %s", c.variable, got)
		}
		s.Tokens = stubTokens{}
		if got := result(v.Value(s)); got != c.want {
			t.Errorf("%s of %q: %s, want %s", c.variable, c.fields, got, c.want)
		}
	}
}

// A keyed rate does not count requests that lack its key, and must not reject them.
func TestPart_LookupOfABodyOfAnotherTypeIsMissing(t *testing.T) {
	for _, c := range []struct{ variable, fields, body, want string }{
		{"$json_id", formType, "id=1", "missing"},
		{"$json_id", jsonType, "", "missing"},
		{"$json_id", jsonType, "{", "bad body_not_json $json_id"},
		{"$form_id", jsonType, `{"id":1}`, "missing"},
		{"$form_id", "Content-Type: image/png\r\nContent-Encoding: gzip\r\n", "\xff", "missing"},
		{"$form_id", "Content-Type: a b/c\r\n", "id=1", "ambiguous content_type_invalid"},
		{"$cookie_id", "Cookie: id=a b\r\n", "", "a+b"},
	} {
		part := &compile(t, c.variable).Parts()[0]
		if got := result(part.Lookup(newSource(t, c.fields, c.body))); got != c.want {
			t.Errorf("%s of %q %q: %s, want %s", c.variable, c.fields, c.body, got, c.want)
		}
	}
}

func TestVariable_ValueDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	const long = "a-name-that-is-longer-than-the-compiler-keeps-on-the-stack"
	fields := "Cookie: a=b; uid=%37; sku=\"1\"\r\nX-Sku: 1\r\n"
	for _, c := range []struct{ text, query, fields, body string }{
		{text: "$path_sku-$path_sku"},
		{text: "$remote_addr/$host/$request_id"},
		{text: "$cookie_uid$cookie_sku"},
		{text: "$http_x_sku"},
		{text: "$arg_sku", query: "a=b&sku=%31"},
		{text: "$arg_sku", query: "a=b&sku=1&s%6bu=2"},
		{text: "$arg_" + long, query: long + "=1"},
		{text: "$json_items.0.sku$json_qty", fields: jsonType, body: `{"items":[{"sku":"\u0031","\u0073":2}],"qty":3}`},
		{text: "$json_" + long, fields: jsonType, body: `{"` + long + `":1}`},
		{text: "$json_sku", fields: jsonType, body: `{"sku":1,"SKU":2}`},
		{text: "$json_sku", fields: formType, body: "sku=1"},
		{text: "x$json_a.sku", fields: jsonType, body: `{"a":[{"sku":1}]}`},
		{text: "$form_sku", fields: formType, body: "a=b&sku=%31"},
		{text: `$form("order[sku]")`, fields: formType, body: "a=b&order%5Bsku%5D=%31"},
		{text: `$json("a.b".c)`, fields: jsonType, body: `{"a.b":{"c":1}}`},
		{text: "$form_sku", fields: partType, body: form(named(`name="sku"`, "1"))},
	} {
		v, s := compile(t, c.text, "sku"), newSource(t, fields+c.fields, c.body)
		head, body, captures, query := s.Head, s.Body, [][]byte{[]byte("%31")}, []byte(c.query)
		if n := testing.AllocsPerRun(100, func() {
			s.Reset()
			s.Head, s.Body, s.BodyRead, s.Captures, s.Query = head, body, true, captures, query
			s.Host, s.RequestID = query, query
			if value, fault := v.Value(s); fault.Reason == reject.Admitted && value == nil && len(v.Parts()) == 1 {
				t.Fatalf("%s is missing", c.text)
			}
		}); n != 0 {
			t.Errorf("%s of %q: %v allocations", c.text, c.body, n)
		}
	}
}

func TestCompile_ANameInParenthesesEndsThere(t *testing.T) {
	v, err := Compile("goods_$(arg_shop)_$(path_sku)x$$", []string{"sku"})
	if err != nil {
		t.Fatal(err)
	}
	s := Source{Query: []byte("shop=7&shop_x=8"), Captures: [][]byte{[]byte("1001")}}
	if value, fault := v.Value(&s); string(value) != "goods_7_1001x$" || fault.Reason != reject.Admitted {
		t.Errorf("%q, %v", value, fault)
	}
}
