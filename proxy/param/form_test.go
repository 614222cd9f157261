package param

import (
	"strings"
	"testing"

	"sluice/proxy/reject"
)

func TestQueryAndForm_AreReadInOneWayOrAmbiguous(t *testing.T) {
	for list, want := range map[string]string{
		"sku=7":                    "7",
		"a=b&sku=7%2D1&c":          "7-1",
		"sku=a+b%2Bc":              "a b+c",
		"%73ku=7":                  "7",
		"sku=%2531":                "%31",
		"&&sku=7&":                 "7",
		"sku=a=b":                  "a=b",
		"s+ku=1&sku=7":             "ambiguous duplicate_key sku",
		"skus=1&s_ku=3&s.ku=4":     "ambiguous duplicate_key sku",
		"sku[]=2":                  "ambiguous name_spelling sku",
		"[sku]=2":                  "ambiguous name_spelling sku",
		"sku]=2":                   "ambiguous name_spelling sku",
		"sku.a=2":                  "ambiguous name_spelling sku",
		"sku=7&sku[]=7":            "ambiguous duplicate_key sku",
		"sku=7&sku%5Ba%5D=8":       "ambiguous duplicate_key sku",
		"sku=7&sku.a=8":            "ambiguous duplicate_key sku",
		"sku=7&+sku=8":             "ambiguous duplicate_key sku",
		"sku=7&+sku=7":             "7",
		"+sku=7":                   "7",
		"?sku=7":                   "7", // URLSearchParams
		"?sku=7&sku=8":             "ambiguous duplicate_key sku",
		"?+sku=7&sku=7":            "7",
		"sku=7&?sku=8":             "ambiguous duplicate_key sku",
		"%3Fsku=8&sku=7":           "ambiguous duplicate_key sku",
		"?":                        "missing",
		"=sku=8&sku=7":             "ambiguous duplicate_key sku", // Netty, Spring WebFlux
		"sku=7&==s%6bu=8":          "ambiguous duplicate_key sku",
		"=8&sku=7&=":               "7",
		"sku=7&sku=7":              "ambiguous duplicate_key sku", // a list of two to some readers
		"sku=7&skus[]=8&x[sku]=9":  "7",
		"SKU=7":                    "missing",
		"sku":                      "missing",
		"sku=":                     "missing",
		"":                         "missing",
		"sku=7&sku=8":              "ambiguous duplicate_key sku",
		"sku=7&SKU=8":              "ambiguous duplicate_key sku",
		"sku=7&%73ku=8":            "ambiguous duplicate_key sku",
		"sku=7&%c5%bfku=8":         "ambiguous duplicate_key sku", // long s
		"sku&sku=7":                "ambiguous duplicate_key sku",
		"Sku=7&SKU=8":              "ambiguous duplicate_key sku",
		"a=1;sku=7&sku=8":          "ambiguous duplicate_key sku",
		"a;sku=7":                  "ambiguous value_invalid $%s_sku",
		"sku=7;a":                  "ambiguous value_invalid $%s_sku",
		"sku=7;":                   "ambiguous value_invalid $%s_sku",
		"a=1;b=2&sku=7":            "7",
		"sku=%ff":                  "bad value_invalid $%s_sku",
		"sku=%e5%95%86":            "商",
		"a=%00&sku=7&a=%ff&b[=;&x": "7",
	} {
		for _, place := range []string{"arg", "form"} {
			query, fields, body := list, "", ""
			if place == "form" {
				query, fields, body = "", formType, list
			}
			want := strings.Replace(want, "%s", place, 1)
			if got := lookup(t, "$"+place+"_sku", query, fields, body); got != want {
				t.Errorf("%s %q: %s, want %s", place, list, got, want)
			}
		}
	}
}

func TestQueryAndForm_NameThatPHPFoldsCountsAsTheName(t *testing.T) {
	for list, want := range map[string]string{
		"goods_id=7&goods.id=8":          "ambiguous duplicate_key goods_id",
		"goods.id=8&goods_id=7":          "ambiguous duplicate_key goods_id",
		"goods_id=7&goods+id=8":          "ambiguous duplicate_key goods_id",
		"goods_id=7&goods%5bid=8":        "ambiguous duplicate_key goods_id",
		"goods_id=7&goods[id=8":          "ambiguous duplicate_key goods_id",
		"goods_id=7&++goods.id=8":        "ambiguous duplicate_key goods_id",
		"goods_id=7&goods_id[]=8":        "ambiguous duplicate_key goods_id",
		"goods_id=7&goods.id[]=8":        "ambiguous duplicate_key goods_id",
		"goods_id=7&goods_id%09=8":       "ambiguous duplicate_key goods_id", // Django and Tomcat, of parts
		"goods_id=7&%EF%BB%BFgoods_id=8": "ambiguous duplicate_key goods_id", // Hono on Node, likewise
		"goods_id=7&goods.id=7":          "7",
		"goods.id=7":                     "7",
		"goods_id=7&goods[id]=8":         "7",
		"goods_id=7&goodsId=8":           "ambiguous duplicate_key goods_id", // GoFrame
		"goods_id=7&'goods_id'=8":        "ambiguous duplicate_key goods_id", // likewise, and what follows
		"goods_id=7&%22goods_id%22=8":    "ambiguous duplicate_key goods_id",
		"goods_id=7&x%3D1%26goods_id=8":  "ambiguous duplicate_key goods_id",
		"goods_id=7&goods_id%3D8%26x=1":  "ambiguous duplicate_key goods_id",
		"goods_id=7&goods%255Fid=8":      "ambiguous duplicate_key goods_id",
		"goods_id=7&x%26y=8&100%25=9":    "7",
		"goods_id=7&GoodsId=7&goods=9":   "7",
		"goods_id=7&goods_id_=8":         "ambiguous duplicate_key goods_id",
		"goods_id=7&x.goods_id=8":        "7",
		"goods_id=7&goods-id=8":          "ambiguous duplicate_key goods_id",
		"goods_id=7&goods_ids=8&.id=&.":  "7",
	} {
		for _, place := range []string{"arg", "form"} {
			query, fields, body := list, "", ""
			if place == "form" {
				query, fields, body = "", formType, list
			}
			if got := lookup(t, "$"+place+"_goods_id", query, fields, body); got != want {
				t.Errorf("%s %q: %s, want %s", place, list, got, want)
			}
		}
	}
	for query, want := range map[string]string{
		"goods_id=7&100%up":          "7",
		"goods_id=7&%u0067oods_id=8": "ambiguous duplicate_key goods_id", // CGI.pm
	} {
		if got := lookup(t, "$arg_goods_id", query, "", ""); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	const nul = "goods_id=7&goods_id%00x=8"
	if got := lookup(t, "$form_goods_id", "", formType, nul); got != "ambiguous duplicate_key goods_id" {
		t.Errorf("%q: %s", nul, got)
	}
}

func TestForm_WithABrokenEscapeIsAmbiguous(t *testing.T) {
	for _, body := range []string{"sku=1%", "sku=1&%u0073ku=2", "a=%4&sku=1", "%zz&sku=1"} {
		if got := lookup(t, "$form_sku", "", formType, body); got != "ambiguous body_not_form" {
			t.Errorf("%q: %s", body, got)
		}
	}
}

func TestForm_WithPartsOfABoundaryIsAmbiguous(t *testing.T) {
	const fields = "Content-Type: application/x-www-form-urlencoded; boundary=bbbbbbbb\r\n"
	for body, want := range map[string]string{
		"sku=1&xxxxx=" + named(`name="sku"`, "2") + "\r\n--bbbbbbbb--\r\n": "ambiguous body_not_form", // Workerman
		"sku=1&a=2": "1",
	} {
		if got := lookup(t, "$form_sku", "", fields, body); got != want {
			t.Errorf("%q: %s, want %s", body, got, want)
		}
	}
}

func TestLookup_IsOfOnePlace(t *testing.T) {
	const fields = "Cookie: sku=5\r\nSku: 6\r\n"
	for _, c := range []struct{ variable, fields, body, want string }{
		{"$arg_sku", formType, "sku=2", "1"},
		{"$arg_sku", jsonType, `{"sku":2}`, "1"},
		{"$arg_sku", "Content-Type: a b\r\nContent-Encoding: gzip\r\n", "\xff", "1"},
		{"$form_sku", formType, "sku=2", "2"},
		{"$json_sku", jsonType, `{"sku":2}`, "2"},
		{"$cookie_sku", formType, "sku=2", "5"},
		{"$http_sku", formType, "sku=2", "6"},
	} {
		if got := lookup(t, c.variable, "sku=1", fields+c.fields, c.body); got != c.want {
			t.Errorf("%s: %s, want %s", c.variable, got, c.want)
		}
	}
}

// elsewhere is what v is, and what CheckOtherPlace says of it.
func elsewhere(t testing.TB, variable, query, fields, body string) string {
	t.Helper()
	s := newSource(t, fields, body)
	s.Query = []byte(query)
	v := compile(t, variable)
	value, fault := v.Value(s)
	if fault.Reason == reject.Admitted {
		fault = v.CheckOtherPlace(s)
	}
	return result(value, fault)
}

func TestVariable_OtherValueInTheOtherPlaceIsAmbiguous(t *testing.T) {
	const inForm, inQuery = "ambiguous places_differ $form_sku", "ambiguous places_differ $arg_sku"
	const inJSON = "ambiguous places_differ $json_sku"
	multi := form(named(`name="sku"`, "2"))
	for _, c := range []struct{ variable, query, fields, body, want string }{
		{"$form_sku", "sku=2", formType, "sku=1", inForm},
		{"$form_sku", "sku=1", formType, "sku=1", "1"},
		{"$form_sku", "sku=%31", formType, "sku=1", "1"},
		{"$form_sku", "", formType, "sku=1", "1"},
		{"$form_sku", "skus=2&x=sku", formType, "sku=1", "1"},
		{"$form_sku", "sku=", formType, "sku=1", inForm},
		{"$form_sku", "sku", formType, "sku=1", inForm},
		{"$form_sku", "SKU=2", formType, "sku=1", inForm},
		{"$form_sku", "s%6bu=2", formType, "sku=1", inForm},
		{"$form_sku", "+sku=2", formType, "sku=1", inForm},
		{"$form_sku", "sku[]=1", formType, "sku=1", inForm},
		{"$form_sku", "sku=1&sku=1", formType, "sku=1", inForm},
		{"$form_sku", "sku=1&sku=2", formType, "sku=1", inForm},
		{"$form_sku", "sku=1;a", formType, "sku=1", inForm},
		{"$form_sku", "sku=1", partType, multi, inForm},
		{"$form_sku", "sku=2", partType, multi, "2"},
		{"$arg_sku", "sku=1", formType, "sku=2", inQuery},
		{"$arg_sku", "sku=1", formType, "sku=1", "1"},
		{"$arg_sku", "sku=1", formType, "a=sku&skus=2", "1"},
		{"$arg_sku", "sku=1", formType, "a=%zz&%ff=b", "1"},
		{"$arg_sku", "sku=1", formType, "sku.a=1", inQuery},
		{"$arg_sku", "sku=1", "Content-Type: application/x-www-form-urlencoded; charset=GBK\r\n", "a=\xc4\xe3", "1"},
		{"$arg_sku", "sku=1", "Content-Type: application/x-www-form-urlencoded; charset=GBK\r\n", "sku=2", inQuery},
		{"$arg_sku", "sku=1", "Content-Type: application/x-www-form-urlencoded; charset=utf-16\r\n", "a=1",
			"ambiguous body_not_utf8"},
		{"$arg_sku", "sku=1", "Content-Type: application/x-www-form-urlencoded, x\r\n", "sku=2",
			"ambiguous content_type_invalid"},
		{"$arg_sku", "sku=1", formType + "Content-Encoding: gzip\r\n", "x", "ambiguous body_compressed"},
		{"$arg_sku", "sku=1", partType, multi, inQuery},
		{"$arg_sku", "sku=2", partType, multi, "2"},
		{"$arg_sku", "sku=1", partType, "preamble\r\n" + multi, "ambiguous places_differ $arg_sku"},
		{"$arg_sku", "sku=1", partType, "preamble\r\n" + form(named(`name="x"`, "2")), "1"},
		{"$arg_sku", "sku=1", partType, form(named(`name="s\ku"`, "2")), "ambiguous body_not_form"},         // Rack
		{"$arg_sku", "sku=1", partType, form(named(`name*0=s; Name*1=ku`, "2")), "ambiguous body_not_form"}, // Go, as the next
		{"$arg_sku", "sku=1", partType, form(named(`name*=utf-8''%73ku`, "2")), "ambiguous body_not_form"},
		{"$arg_sku", "sku=1", partType, form(named(`name=a; filename*=utf-8''%e5`, "2")), "1"},
		{"$arg_sku", "sku=1", partType, form(named(`name="a\b"`, "2")), "1"},
		{"$arg_sku", "sku=1", partType, form(named(`name="sku"; filename="1"`, "1")), inQuery},
		{"$arg_sku", "sku=1", "", "sku=2", inQuery},
		{"$arg_sku", "sku=1", "Content-Type:\r\n", "sku=2", inQuery},
		{"$arg_sku", "sku=1", "", "sku=1&a=2", "1"},
		{"$arg_sku", "sku=1", "", "\x00\xff%zz", "1"},
		{"$arg_sku", "sku=1", "Content-Type: multipart/mixed; boundary=b\r\n", multi, inQuery},
		{"$arg_sku", "sku=1", "Content-Type: Multipart/Related; boundary=b\r\n", multi, inQuery},
		{"$arg_sku", "sku=1", "Content-Type: multipart/mixed; boundary=b\r\n", form(named(`name="x"`, "2")), "1"},
		{"$arg_sku", "sku=1", formType, "\xef\xbb\xbfsku=2", inQuery},
		{"$arg_sku", "sku=1", "", "\xef\xbb\xbfsku=2", inQuery},
		{"$arg_sku", "sku=1", jsonType, "{\x00\"\x00s\x00k\x00u\x00\"\x00:\x002\x00}\x00", "ambiguous body_not_utf8"},
		{"$arg_sku", "sku=1", "Content-Type: application/json; charset=utf-7\r\n", `{"+AHMAawB1-":2}`,
			"ambiguous body_not_utf8"},
		{"$arg_sku", "sku=1", jsonType, `{"sku":2}`, inQuery},
		{"$arg_sku", "sku=1", jsonType, ` {"sku":1,"a":{"sku":2}}`, "1"},
		{"$arg_sku", "sku=1", jsonType, `{"sku":"\u0031"}`, "1"},
		{"$arg_sku", "sku=1", jsonType, `{"\u0073ku":"2"}`, inQuery},
		{"$arg_sku", "sku=1", jsonType, `{"SKU":"2"}`, inQuery},
		{"$arg_sku", "sku=1", jsonType, `{"sku":["1"]}`, inQuery},
		{"$arg_sku", "sku=1", jsonType, `{"sku":null}`, inQuery},
		{"$form_sku", "?sku=2", formType, "sku=1", "ambiguous places_differ $form_sku"},
		{"$arg_sku", "sku=1", jsonType, `{"S-Ku":2}`, inQuery},
		{"$arg_sku", "sku=1", jsonType, `{"S-Ku":2,"s_ku":1}`, "ambiguous duplicate_key sku"},
		{"$arg_sku", "sku=1", jsonType, `{"sku":1,"S-Ku":2}`, "ambiguous duplicate_key sku"},
		{"$arg_sku", "sku=1", "Content-Type: text/xml\r\n", "<a><S-Ku>2</S-Ku></a>", inQuery},
		{"$arg_sku", "sku=1", jsonType, `{"sku":1,"sku":2}`, "ambiguous duplicate_key sku"},
		{"$arg_sku", "sku=1", jsonType, `[{"sku":2}]`, "1"},
		{"$arg_sku", "sku=1", jsonType, `2`, "1"},
		{"$arg_sku", "sku=1", jsonType, `{"sku":2} /**/`, inQuery},
		{"$arg_sku", "sku=1", jsonType, `{"a":2} /**/`, "1"},
		{"$arg_sku", "sku=1", jsonType + "Content-Encoding: gzip\r\n", "x", "ambiguous body_compressed"},
		{"$arg('a[sku]')", "a[sku]=1", jsonType, `{"a":{"sku":2}}`, "ambiguous places_differ $arg('a[sku]')"},
		{"$arg('a[sku]')", "a[sku]=1", jsonType, `{"sku":2,"b":{"sku":2}}`, "1"},
		{"$arg_sku", "sku=1", "Content-Type: text/x-json\r\n", `{"sku":2}`, inQuery},
		{"$arg_sku", "sku=1", "Content-Type: application/vnd.api+JSON, x\r\n", `{"sku":2}`, "ambiguous content_type_invalid"},
		{"$arg_sku", "sku=1", "Content-Type: application/json; charset=gbk\r\n", "{\"a\":\"\xc4\xe3\"}", "1"},
		{"$arg_sku", "sku=1", "Cookie: sku=2\r\nSku: 3\r\n", "", "1"},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", "sku=2", inQuery},                              // Bottle
		{"$arg_sku", "sku=1", "Content-Type: application/x-www-form-urlencoded2\r\n", "s%6bu=2", inQuery},    // Tornado, Falcon
		{"$arg_sku", "sku=1", "Content-Type: x/multipart; boundary=b\r\n", multi, inQuery},                   // formidable
		{"$arg_sku", "sku=1", "Content-Type: a/b; boundary=b0\r\n", form(named(`name="sku"`, "2")), inQuery}, // Workerman
		{"$arg_sku", "sku=1", "Content-Type: a/b; boundary=b0\r\n", form(named(`name="a"`, "2")), "1"},
		{"$arg_sku", "sku=1", "Content-Type: application/x-www-form-urlencoded; boundary=b0\r\n",
			form(named(`name="sku"`, "2")), inQuery},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", `{"sku":2}`, inQuery}, // GoFrame
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", `{"s\u006bu":2}`, inQuery},
		// Python's json takes NaN, and UTF-16 without its name; others take 02 and comments.
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", `{"sku" : "2", "x": NaN}`, inQuery},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", `{"s\u006bu":02}`, inQuery},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", `{"a":"sku","x":NaN}`, "1"},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", "\xff\xfe{\x00\"\x00s\x00", "ambiguous body_not_utf8"},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", "\x00 \x00{\x00\"\x00s", "ambiguous body_not_utf8"},
		{"$arg_sku", "sku=1", "", `{"sku":2}`, inQuery},
		{"$arg_sku", "sku=1", formType, `{"sku":2}`, inQuery},
		{"$arg_sku", "sku=1", formType, "<a><sku>2</sku></a>", inQuery},
		{"$arg_sku", "sku=1", "Content-Type: text/xml\r\n", "<a><sku>2</sku></a>", inQuery},
		{"$arg_sku", "sku=1", "Content-Type: text/xml\r\n", "<a><s&#107;u>2</s&#107;u></a>", inQuery},
		{"$arg_sku", "sku=1", "Content-Type: text/xml\r\n", "<a><note>2</note></a>", "1"},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", `{"sku":1}`, "1"},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", "a note", "1"},
		{"$arg_sku", "sku=1", "Content-Type: image/png\r\n", "\x89PNG\r\n\\\x00", "1"},
		{"$arg_sku", "sku=1", jsonType, "s%6bu=2", inQuery},
		{"$arg_sku", "sku=1", "Content-Type: a b\r\n", "sku=2", "ambiguous content_type_invalid"},
		// GoFrame drops blanks and NUL before a brace, and reads name and value of a form as one text.
		{"$arg_sku", "sku=1", formType, "\v{\"s%6bu\":2}", inQuery},
		{"$arg_sku", "sku=1", formType, `%7B%22s%6bu%22%3A2%7D`, inQuery},
		{"$arg_sku", "sku=1", formType, `&+%00%7B"sku":2%7D`, inQuery},
		{"$arg_sku", "sku=1", formType, `{"sku":=2}`, inQuery},
		{"$arg_sku", "sku=1", formType, `={"s\u006bu":2}`, inQuery},
		{"$arg_sku", "sku=1", formType, `<a s=ku="2"/>`, inQuery},
		{"$arg_sku", "sku=1", formType, `%3Ca%3E%3Csku%3E2%3C/sku%3E%3C/a%3E`, inQuery},
		{"$arg_sku", "sku=1", "Content-Type: text/xml\r\n", "<a b='>' S-Ku='2'/>", inQuery},
		{"$arg_sku", "sku=1", "Content-Type: text/xml\r\n", "<x:a><x:sku>2</x:sku></x:a>", inQuery},
		{"$arg_sku", "sku=1", formType, `%7B%22a%22%3A2%7D`, "1"},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", "\u3000{\"sku\":2}\f", inQuery},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", "?sku=2", inQuery},
		{"$arg_sku", "sku=1", "Content-Type: text/plain\r\n", "a;'S-Ku'=2", inQuery},
		{"$arg_sku", "sku=1", "Content-Type: application/x-www-form-urlencoded; x=JSON\r\n", `{"sku":2}`,
			"ambiguous content_type_invalid"},
		{"$json_sku", "sku=2", jsonType, `{"sku":1}`, inJSON},
		{"$json_sku", "sku=1&a=2", jsonType, `{"sku":1}`, "1"},
		{"$json_sku", "sku[]=1", jsonType, `{"sku":1}`, inJSON},
		{"$json_a.sku", "sku=2", jsonType, `{"a":{"sku":1}}`, "1"},
		{"$json_a.sku", "a[sku]=2", jsonType, `{"a":{"sku":1}}`, "ambiguous places_differ $json_a.sku"},
		{"$json_a.0.sku", "a[][sku]=1", jsonType, `{"a":[{"sku":1}]}`, "ambiguous places_differ $json_a.0.sku"},
		{"$json_a.0.sku", "a=1", jsonType, `{"a":[{"sku":1}]}`, "ambiguous places_differ $json_a.0.sku"},
		{"$cookie_sku", "sku=2", "Cookie: sku=1\r\n" + formType, "sku=2", "1"},
		{"$arg_sku/$form_sku", "sku=1", formType, "sku=1", "1/1"},
		{"$arg_sku/$form_sku", "sku=1", formType, "sku=2", inQuery},
	} {
		if got := elsewhere(t, c.variable, c.query, c.fields, c.body); got != c.want {
			t.Errorf("%s of %q, %q %q: %s, want %s", c.variable, c.query, c.fields, c.body, got, c.want)
		}
	}
}

func TestVariable_TextThatSaysNothingOfTheNamePasses(t *testing.T) {
	const xml, text, binary = "Content-Type: text/xml\r\n", "Content-Type: text/plain\r\n", "Content-Type: a/b\r\n"
	for _, c := range []struct{ fields, body string }{
		{xml, "<xml><appid>wx2</appid><mch_id>7</mch_id><note>C:\\x &#10; paid=?</note></xml>"},
		{xml, "<a><url>https://s/i?x=2&amp;id=1</url></a>"},
		{xml, "<a><url><![CDATA[https://s/i?x=2&id=1]]></url></a>"},
		{xml, "<a><url>https://s/i?id=2</url><path>/id/2</path></a>"},
		{formType, "<xml><appid>wx2</appid></xml>"},
		{text, "please provide an invoice \\o/ &#10;"},
		{text, "{\"e\":\"a\\\"b\"}\n{\"e\":\"id\"}\n"},
		{jsonType, `{"ref":"https://s/item?spm=a&id=1"}`},
		{jsonType, `{"ref":"https://s/item?spm=a&id=1&x=2","url":"https://s/item?spm=a&id=1"}`},
		{jsonType, `{"ref":"https%3A%2F%2Fs%2F%3Fa%3D1%26id%3D2"}`},
		{jsonType, `{"id":1,"note":"A%26B","address":"%u5317%u4EAC","body":{"id":2}}`},
		{jsonType, `{"ext":"{\"url\":\"/?a=2&id=1\"}"}`},
		{binary, "\x0a\x08androids%u0041&%26x"},
		{"Content-Type: application/x-www-form-urlencoded; boundary=b\r\n", "n=2"},
	} {
		if got := elsewhere(t, "$arg_id", "id=1", c.fields, c.body); got != "1" {
			t.Errorf("%q %q: %s", c.fields, c.body, got)
		}
	}
}

func TestVariable_CheckOtherPlaceDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, c := range []struct{ text, query, fields, body string }{
		{"$form_sku", "a=b&s%6bu=%31", formType, "sku=1"},
		{"$arg_sku", "sku=1", formType, "a=b&s%6bu=%31"},
		{"$arg_sku", "sku=1", partType, form(named(`name="sku"`, "1"))},
	} {
		v, s := compile(t, c.text), newSource(t, c.fields, c.body)
		head, body, query := s.Head, s.Body, []byte(c.query)
		if n := testing.AllocsPerRun(100, func() {
			s.Reset()
			s.Head, s.Body, s.BodyRead, s.Query = head, body, true, query
			if fault := v.CheckOtherPlace(s); fault.Reason != reject.Admitted {
				t.Fatalf("%v", fault)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", c.text, n)
		}
	}
}
