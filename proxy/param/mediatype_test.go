package param

import (
	"strings"
	"testing"
)

func TestContentType_IsReadInOneWayOrAmbiguous(t *testing.T) {
	const (
		form, json  = "$form_sku sku=1", `$json_sku {"sku":"1"}`
		invalid     = "ambiguous content_type_invalid"
		otherLetter = "ambiguous body_not_utf8"
	)
	for _, c := range []struct{ contentType, variable, want string }{
		{"application/json", json, "1"},
		{"Text/JSON", json, "1"},
		{"application/vnd.shop+json", json, "1"},
		{"application/json ; charset=\"UTF-8\";", json, "1"},
		{"application/json; charset=us-ascii", json, "1"},
		{"application/json; odata=verbose", json, "1"},
		{"application/json; charset=utf-16", json, otherLetter},
		{"application/json; charset=gbk", json, otherLetter},
		{"application/json; charset=utf-8; charset=utf-7", json, invalid},
		{"application/json;charset =utf-7", json, invalid},
		{"application/json; charset", json, invalid},
		{"application/json; a=\"b;c\"", json, invalid},
		{"application/json; charset*=utf-7''utf-7", json, invalid},
		{"application/json, x/y", json, invalid},
		{"application/json x", json, invalid},
		{"; charset=utf-8", json, invalid},
		{"json", json, invalid},
		{"+json", json, invalid},
		{"application/+json", json, "bad type_not_json $json_sku"},
		{"text/plain", json, "bad type_not_json $json_sku"},
		{"application/x-www-form-urlencoded", json, "bad type_not_json $json_sku"},
		{"", json, "bad type_not_json $json_sku"},

		{"application/x-www-form-urlencoded", form, "1"},
		{"Application/X-WWW-Form-Urlencoded;charset=utf8", form, "1"},
		{"application/x-www-form-urlencoded; charset=IBM037", form, otherLetter},
		{"application/x-www-form-urlencoded; charset=utf-16", form, otherLetter},
		{"application/x-www-form-urlencoded; charset=ISO-8859-1", form, "1"}, // Apache's HttpClient
		{"application/x-www-form-urlencoded; charset=GBK", form, "1"},
		{"application/x-www-form-urlencoded; charset=GBK", form + "%c3%a9", otherLetter},
		{"application/x-www-form-urlencoded,x", form, invalid},
		{"application/x-www-form-urlencoded; x=json", form, invalid},                    // formidable looks for the word
		{"application/x-www-form-urlencoded+json", json, "bad type_not_json $json_sku"}, // a form for h3 and Hertz
		{"application/xml+json", json, "bad type_not_json $json_sku"},                   // likewise for Elysia
		{"application/x-www-form-urlencoded x", form, invalid},
		{"application/x-www-form-urlencoded2", form, "bad body_not_form $form_sku"},
		{"application/json", form, "bad body_not_form $form_sku"},
		{"", form, "bad body_not_form $form_sku"},
	} {
		variable, body, _ := strings.Cut(c.variable, " ")
		fields := ""
		if c.contentType != "" {
			fields = "Content-Type: " + c.contentType + "\r\n"
		}
		if got := lookup(t, variable, "", fields, body); got != c.want {
			t.Errorf("%s of %q: %s, want %s", variable, c.contentType, got, c.want)
		}
	}
}

func TestCheckBody_ChecksWhatIsLookedInto(t *testing.T) {
	for _, c := range []struct{ fields, body, want string }{
		{jsonType, `{}`, "missing"},
		{jsonType + "Content-Encoding: \r\n", `{}`, "missing"},
		{jsonType + "Content-Encoding:\r\nContent-Encoding: gzip\r\n", `{}`, "ambiguous body_compressed"},
		{jsonType + "Content-Encoding: identity\r\n", `{}`, "ambiguous body_compressed"},
		{formType + "Content-Encoding: gzip\r\n", "a=b", "ambiguous body_compressed"},
		{formType + "Content-Encoding: gzip\r\n", "", "missing"},
		{partType + "Content-Encoding: gzip\r\n", "x", "ambiguous body_compressed"},
		{jsonType, "{\"sku\":\"\xff\"}", "ambiguous body_not_utf8"},
		{formType, "a=\xff", "ambiguous body_not_utf8"},
		{partType, "\xff", "missing"},
		{"Content-Type: image/png\r\nContent-Encoding: gzip\r\n", "\xff", "missing"},
		{"Content-Type: a;b\r\n", "x", "ambiguous content_type_invalid"},
		{"", "\xff", "missing"},
	} {
		s := newSource(t, c.fields, c.body)
		for range 2 {
			if got := result(nil, s.CheckBody()); got != c.want {
				t.Errorf("%q %q: %s, want %s", c.fields, c.body, got, c.want)
			}
		}
	}
}
