package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// reads is what the gate finds in a request: the SKU, or the reason why it is refused.
func found(t *testing.T, variable, target, headers, body string) string {
	t.Helper()
	var asked string
	o := options(&seen{})
	o.Routes = []Route{{Name: "x", Match: "/x", Gate: Check, SKU: variable}}
	o.Windows = windowsFunc(func(_ int64, sku []byte) (time.Duration, bool) { asked = string(sku); return 0, true })
	addr, _ := gate(t, o)
	resp, _ := talk(t, addr, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: s\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", target, headers, len(body), body))
	if reason := resp.Header.Get("X-Sluice-Reason"); reason != "" {
		return reason
	}
	return asked
}

const (
	jsonType = "Content-Type: application/json\r\n"
	formType = "Content-Type: application/x-www-form-urlencoded\r\n"
)

func TestJSONThatShopsReadDifferentlyIsNotJudged(t *testing.T) {
	for _, tt := range []struct{ variable, target, body, want string }{
		{"$json_sku", "/x", `{"sku":"1","ſku":"2"}`, "ambiguous"},      // Go folds U+017F to s
		{"$json_sku", "/x", `{"sku":"1","s\u212au":"2"}`, "ambiguous"}, // and U+212A to k
		{"$json_id", "/x", `{"id":"1","ıd":"2"}`, "ambiguous"},         // Java's equalsIgnoreCase
		{"$json_id", "/x", `{"id":"1","İd":"2"}`, "ambiguous"},
		{"$json_sku_id", "/x", `{"sku_id":"1","skuId":"2"}`, "ambiguous"}, // fastjson, Jackson with a naming strategy
		{"$json_sku_id", "/x", `{"sku_id":"1","sku-ID":"2"}`, "ambiguous"},
		{"$json_skuId", "/x", `{"skuId":"1","s_ku_id":"2"}`, "ambiguous"},
		{"$json_sku", "/x", `{"sku":"1","sku\u0000x":"2"}`, "ambiguous"}, // C strings
		{"$json_sku", "/x", `{"sku":"1","\u0073ku":"2"}`, "ambiguous"},
		{"$json_sku", "/x", `{"sku":"1","s\ud800ku":"2"}`, "bad_request"}, // some drop half a pair
		{"$json_sku", "/x", `{"sku":"1","\ud800\u0073ku":"2"}`, "bad_request"},
		{"$json_sku", "/x", `{"sku":"1","a":"\udc00"}`, "bad_request"},
		{"$json_sku", "/x", `{"sku":"1","s\ku":"2"}`, "bad_request"},
		{"$json_sku", "/x", "{\"sku\":\"1\",\"s\tku\":\"2\"}", "bad_request"},
		{"$json_sku", "/x", `{"sku":"1","a":NaN}`, "bad_request"},
		{"$json_sku", "/x", `{"sku":"1","a":01}`, "bad_request"},
		{"$json_sku", "/x", `{"sku":"1"}/*,"sku":"2"*/`, "bad_request"},
		{"$json_sku", "/x", "\ufeff" + `{"sku":"1"}`, "bad_request"},
		{"$json_sku", "/x?sku=2", `{"sku":"1"}`, "ambiguous"}, // Rails merges query and body
		{"$json_a.sku", "/x?a[sku]=2", `{"a":{"sku":"1"}}`, "ambiguous"},
		{"$json_a.sku", "/x?a.sku=2", `{"a":{"sku":"1"}}`, "ambiguous"},
		{"$json_a.0.sku", "/x", `{"a":[{"sku":"1"},{"sku":"2"}]}`, "ambiguous"},
		{"$json_a.0.sku", "/x", `{"a":[{"sku":"1"},{"SKU":"2"}]}`, "ambiguous"},
		{"$json_a.0.sku", "/x", `{"a":[{"sku":"1"},{"gift":true}]}`, "1"},
		{"$json_a.1", "/x", `{"a":["buy","1",3]}`, "1"},
		{"$json_sku", "/x?other=2", `{"sku":"1","emoji":"\ud83d\ude00","\\ud800":1}`, "1"},
		{"$json_sku", "/x", `{"sku":"\u0031"}`, "1"},
	} {
		if got := found(t, tt.variable, tt.target, jsonType, tt.body); got != tt.want {
			t.Errorf("%s of %s %s = %q, want %q", tt.variable, tt.target, tt.body, got, tt.want)
		}
	}
}

func TestBodyOfATypeThatShopsReadDifferentlyIsNotJudged(t *testing.T) {
	for _, tt := range []struct{ variable, headers, body, want string }{
		{"$json_sku", "Content-Type: application/json; charset=utf-16\r\n", `{"sku":"1"}`, "ambiguous"},
		{"$json_sku", "Content-Type: application/json; charset=gbk\r\n", `{"sku":"1"}`, "ambiguous"},
		{"$json_sku", "Content-Type: application/json;charset=\"UTF-8\"\r\n", `{"sku":"1"}`, "1"},
		{"$json_sku", "Content-Type: application/json; charset=utf-8; charset=utf-7\r\n", `{"sku":"1"}`, "ambiguous"},
		{"$json_sku", "Content-Type: application/json;charset =utf-7\r\n", `{"sku":"1"}`, "ambiguous"},
		{"$json_sku", "Content-Type: application/json; charset*=utf-7''utf-7\r\n", `{"sku":"1"}`, "ambiguous"},
		{"$json_sku", "Content-Type: application/json, x/y\r\n", `{"sku":"1"}`, "ambiguous"},
		{"$json_sku", "Content-Type: application/x-www-form-urlencoded+json\r\n", `{"sku":"1"}`, "ambiguous"},
		{"$json_sku", "Content-Type: application/vnd.shop+json\r\n", `{"sku":"1"}`, "1"},
		{"$json_sku", "Content-Type: application/json; odata=verbose\r\n", `{"sku":"1"}`, "1"},
		{"$json_sku", jsonType + "Content-Encoding:\r\nContent-Encoding: gzip\r\n", `{"sku":"1"}`, "ambiguous"},
		{"$json_sku", jsonType + "Content-Encoding: \r\n", `{"sku":"1"}`, "1"},
		{"$form_sku", "Content-Type: application/x-www-form-urlencoded; charset=IBM037\r\n", "sku=1", "ambiguous"},
		{"$form_sku", "Content-Type: application/x-www-form-urlencoded; charset=ISO-8859-1\r\n", "sku=1", "1"}, // what Apache's client says
		{"$form_sku", "Content-Type: application/x-www-form-urlencoded; charset=ISO-8859-1\r\n", "sku=%e4%b8%ad", "ambiguous"},
		{"$form_sku", formType, "sku=1&_charset_=utf-7", "ambiguous"},
		{"$form_sku", formType, "sku=1&_charset_=UTF-8", "1"},
		{"$form_sku", formType, "sku=1&%u0073ku=2", "ambiguous"}, // IIS
		{"$form_sku", formType, "sku=1%", "ambiguous"},
		{"$form_sku", formType, "sku=1&ſku=2", "ambiguous"},
		{"$arg_sku", "", "", "1"},
		{"$arg_sku", formType + "Content-Encoding: gzip\r\n", "a=b", "ambiguous"},
		{"$arg_sku", "Content-Type: application/x-www-form-urlencoded,x\r\n", "sku=2", "ambiguous"}, // PHP stops at the comma
		{"$arg_sku", "Content-Type: application/x-www-form-urlencoded x\r\n", "sku=2", "ambiguous"},
		{"$arg_sku", jsonType, `{"Sku":2}`, "ambiguous"},
		{"$arg_sku", jsonType, `{"a":{"sku":2}}`, "1"},
		{"$arg_sku", jsonType, `[1]`, "1"},
		{"$arg_sku", "Content-Type: text/plain\r\n", "sku=2", "1"},
	} {
		target := "/x"
		if strings.HasPrefix(tt.variable, "$arg") {
			target = "/x?sku=1"
		}
		if got := found(t, tt.variable, target, tt.headers, tt.body); got != tt.want {
			t.Errorf("%s of %q %q = %q, want %q", tt.variable, tt.headers, tt.body, got, tt.want)
		}
	}
}
