package param

import (
	"strings"
	"testing"
)

func TestJSON_IsReadInOneWayOrRejected(t *testing.T) {
	const (
		twice   = "ambiguous duplicate_key "
		invalid = "bad body_not_json $json_sku"
	)
	for _, c := range []struct{ variable, body, want string }{
		{"$json_sku", ` { "a" : [ 1 , {} ] , "sku" : 9 } `, "9"},
		{"$json_sku", `{"sku":"\u0031"}`, "1"},
		{"$json_sku", `{"\u0073ku":"1"}`, "1"},
		{"$json_sku", `{"sku":"a\"b\\c\/\b\f\n\r\t\u5546\ud83d\ude00d"}`, "a\"b\\c/\b\f\n\r\t商😀d"},
		{"$json_sku", `{"sku":"1","emoji":"\ud83d\ude00","\\ud800":1,"x":"\ufffd"}`, "1"},
		{"$json_sku", `{"a":"}","b":["]",{"sku":3}],"sku":"1"}`, "1"},
		{"$json_sku", `{"sku":""}`, "missing"},
		{"$json_sku", `{}`, "missing"},
		{"$json_sku", `[]`, "missing"},
		{"$json_sku", `"sku"`, "missing"},
		{"$json_sku", `{"Sku":"1","sk":2,"skus":3}`, "missing"},
		{"$json_0", `["1"]`, "1"},
		{"$json_0", `{"0":"1"}`, "bad value_invalid $json_0"},
		{"$json_a.0.sku", `{"a":{"0":{"sku":"1"}}}`, "bad value_invalid $json_a.0.sku"},
		{"$json_a.0.sku", `{"a":{"b":1}}`, "bad value_invalid $json_a.0.sku"},
		{"$json_a.0.0.sku", `{"a":[{"0":{"sku":"1"}}]}`, "bad value_invalid $json_a.0.0.sku"},
		{"$json_a.0.0.sku", `{"a":[[{"sku":"1"}],{"0":{"sku":"2"}}]}`, twice + "sku"},
		{"$json_a.0.b.0.sku", `{"a":[{"b":[{"sku":"1"}]},{"b":{"0":{"sku":2}}}]}`, twice + "sku"},
		{"$json_a.0x", `{"a":{"0x":"1"}}`, "1"},

		{"$json_sku", `{"sku":9,"sku":1}`, twice + "sku"},
		{"$json_sku", `{"sku":9,"Sku":1}`, twice + "sku"},
		{"$json_sku", `{"sku":9,"x":{},"sku":{}}`, twice + "sku"},
		{"$json_sku", `{"sku":"1","\u0073ku":"2"}`, twice + "sku"},
		{"$json_sku", `{"sku":"1","ſku":"2"}`, twice + "sku"},      // encoding/json folds U+017F to s
		{"$json_sku", `{"sku":"1","s\u212au":"2"}`, twice + "sku"}, // and U+212A to k
		{"$json_a.sku", `{"a":{"sku":"1"},"A":{"sku":"2"}}`, twice + "a"},
		{"$json_a.sku", `{"a":{"sku":"1"},"a":2}`, twice + "a"},
		{"$json_a.sku", `{"a":{"sku":"1"},"sku":"2"}`, "1"},
		{"$json_a.sku", `{"a":"sku"}`, "missing"},

		{"$json_a.0.sku", `{"a":[{"sku":"1"}]}`, "1"},
		{"$json_a.0.sku", `{"a":[{"sku":"1"},{"sku":"2"}]}`, twice + "sku"},
		{"$json_a.0.sku", `{"a":[{"sku":"1"},{"SKU":"2"}]}`, twice + "sku"},
		{"$json_a.0.sku", `{"a":[{"sku":"1"},{"sku":2,"sku":"3"}]}`, twice + "sku"},
		{"$json_a.1.sku", `{"a":[{"sku":"1"},{"gift":true}]}`, twice + "sku"},
		{"$json_a.1.sku", `{"a":[{"sku":1,"sku":2}]}`, "missing"},
		{"$json_a.0.b.0.sku", `{"a":[{"b":[{"sku":"1"}]},{"b":[{},{"x":[{"sku":2}]}]}]}`, "1"},
		{"$json_a.0.sku", `{"a":[{"sku":"1"},{"gift":true},[],7,"sku"]}`, "1"},
		{"$json_a.1", `{"a":["buy","1",3]}`, "1"},
		{"$json_a.3", `{"a":["buy","1",3]}`, "missing"},
		{"$json_a.x", `{"a":["buy"]}`, "missing"},
		{"$json_a.-1", `{"a":["buy"]}`, "bad value_invalid $json_a"},

		{"$json_sku", `{"sku":0}`, "0"},
		{"$json_sku", `{"sku":-12}`, "-12"},
		{"$json_sku", `{"sku":123456789012345}`, "123456789012345"},
		{"$json_sku", `{"sku":1234567890123456}`, "1234567890123456"},
		{"$json_sku", `{"sku":9007199254740993}`, "9007199254740993"}, // a double would round it
		{"$json_sku", `{"sku":9223372036854775807}`, "9223372036854775807"},
		{"$json_sku", `{"sku":9223372036854775808}`, "bad value_invalid $json_sku"}, // Fastjson keeps the last 64 bits
		{"$json_sku", `{"sku":12345678901234567890123}`, "bad value_invalid $json_sku"},
		{"$json_sku", `{"sku":-9223372036854775808}`, "-9223372036854775808"},
		{"$json_sku", `{"sku":-0}`, "bad value_invalid $json_sku"},
		{"$json_sku", `{"sku":1e18}`, "bad value_invalid $json_sku"},
		{"$json_sku", `{"sku":1e3}`, "bad value_invalid $json_sku"},
		{"$json_sku", `{"sku":1.0}`, "bad value_invalid $json_sku"},
		{"$json_sku", `{"sku":null}`, "bad value_invalid $json_sku"},
		{"$json_sku", `{"sku":{"id":1}}`, "bad value_invalid $json_sku"},
		{"$json_sku", `{"sku":["1"]}`, "bad value_invalid $json_sku"},

		{"$json_sku", `{"sku":"1","s\ud800ku":"2"}`, invalid}, // some drop half a pair
		{"$json_sku", `{"sku":"1","\ud800\u0073ku":"2"}`, invalid},
		{"$json_sku", `{"sku":"1\ud83d"}`, invalid},
		{"$json_sku", `{"sku":"\udc001"}`, invalid},
		{"$json_sku", `{"sku":"1\ud83d\ud83d\ude00"}`, invalid},
		{"$json_sku", `{"sku":"1","a":"\udc00"}`, "1"},
		{"$json_sku", `{"a":"\ud83d\ud83d\ude00","sku":"1"}`, "1"},
		{"$json_sku", `{"sku":"1","a":{"s\ud83dku":"\ud83d"}}`, "1"},
		{"$json_sku", `{"sku":"1","s\ku":"2"}`, invalid},
		{"$json_sku", "{\"sku\":\"1\",\"s\tku\":\"2\"}", invalid},
		{"$json_sku", `{"sku":"1","a":NaN}`, invalid},
		{"$json_sku", `{"sku":"1","a":01}`, invalid},
		{"$json_sku", `{"sku":"1",}`, invalid},
		{"$json_sku", `{"sku":"1"}/*,"sku":"2"*/`, invalid},
		{"$json_sku", "\ufeff" + `{"sku":"1"}`, invalid},
		{"$json_sku", `{"sku":`, invalid},
		{"$json_sku", ``, invalid},
	} {
		if got := lookup(t, c.variable, "", jsonType, c.body); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.variable, c.body, got, c.want)
		}
	}
}

func TestJSONText_IsTheValueAsItStands(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":{"code":0}}`:                    "0",
		` {"data" : { "code" : "o\u006b"}}`:      `"o\u006b"`,
		`{"data":{"code":true,"note":"\ud83d"}}`: "true",
		`{"data":{"code":1,"Code":2}}`:           "",
		`{"data":{"code":1,"Code":1}}`:           "",
		`{"data":{"code":1,"code":2}}`:           "",
		`{"data":{"code":1,"code":1}}`:           "1",
		`{"data":{"code":1,"code":1,"code":2}}`:  "",
		`{"data":{"code":1,"co\ud83dde":2}}`:     "",
		`{"data":{"Code":1}}`:                    "",
		`{"data":7}`:                             "",
		`{"data":{"code":0}`:                     "",
		``:                                       "",
	} {
		if got := string(JSONText([]byte(body), []string{"data", "code"})); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	if got := string(JSONText([]byte(" [1, 2] "), nil)); got != "[1, 2]" {
		t.Errorf("without a path: %q", got)
	}
}

// The work for a hostile body is linear: no error text, tree or stack grows with its nesting.
func TestJSON_HostileBodyAllocatesLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	v := compile(t, "$json_a.0.sku")
	for _, c := range []struct{ open, end string }{
		{"[", ""}, {`{"a":`, ""}, {`[[],`, ""}, {"[", "t" + strings.Repeat("x", 16<<10)}, {`{"a":[`, ""},
		{`{"\u0073":1,"a":`, ""}, {`[{},`, "1"},
	} {
		for _, depth := range []int{299, 9_000, 20_000} {
			s := newSource(t, jsonType, strings.Repeat(c.open, depth)+c.end)
			n := testing.AllocsPerRun(1, func() {
				s.json = jsonUnchecked
				if got := result(v.Value(s)); got != "bad body_not_json $json_a.0.sku" {
					t.Errorf("%d times %s: %.80s", depth, c.open, got)
				}
			})
			if n > 40 { // the library's stack doubles
				t.Errorf("%d times %s: %v allocations", depth, c.open, n)
			}
		}
	}
}

func TestJSON_NestedValueIsFound(t *testing.T) {
	nested := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	if got := lookup(t, "$json_sku", "", jsonType, `{"a":`+nested+`,"sku":"1"}`); got != "1" {
		t.Error(got)
	}
}
