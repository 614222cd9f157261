package proxy

import (
	"fmt"
	"strings"
	"testing"
)

var overridable = []Route{
	{Name: "order", Match: "PUT /order/{sku}", Gate: Check, SKU: "$path_sku"},
	{Name: "reserve", Match: "POST /reserve/{sku}", Gate: Check, SKU: "$path_sku"},
	{Name: "any", Match: "/any/", Gate: Limit},
	{Name: "buy", Match: "PUT /buy", Gate: Limit},
	{Name: "export", Match: "POST /export", Gate: Limit},
	{Name: "table", Match: "POST /export.csv", Gate: Limit},
	{Name: "rest", Match: "/", Gate: Pass},
}

func TestRequestThatNamesAnotherMethodOrPathIsJudgedByItToo(t *testing.T) {
	form, json := "Content-Type: application/x-www-form-urlencoded\r\n", "Content-Type: application/json\r\n"
	for _, tt := range []struct{ line, headers, body, want string }{
		{"POST /order/1", "X-HTTP-Method-Override: PUT\r\n", "", "ambiguous"},
		{"POST /order/1", "x-http-method-override: put\r\n", "", "ambiguous"},
		{"GET /order/1", "X-HTTP-Method: PUT\r\n", "", "ambiguous"},
		{"POST /order/1", "X-Method-Override: \tPuT \r\n", "", "ambiguous"},
		{"POST /order/1", "X-Method-Override: GET\r\nX-Method-Override: PUT\r\n", "", "ambiguous"},
		{"POST /order/1", "X-Method-Override: GET, PUT\r\n", "", "ambiguous"},
		{"POST /Order%2f1", "X-Method-Override: PUT\r\n", "", "ambiguous"},
		{"GET /reserve/1", "X-HTTP-Method-Override: POST\r\n", "", "ambiguous"},
		{"POST /page", "X-Original-URL: /reserve/1\r\n", "", "ambiguous"},
		{"POST /page", "X-Rewrite-URL: http://s/Reserve/1?x\r\n", "", "ambiguous"},
		{"POST /page", "X-Rewrite-URL: reserve/1\r\n", "", "ambiguous"},
		{"POST /page", "X-Original-URL: ?x\r\n", "", "ambiguous"},
		{"POST /buy.json", "X-HTTP-Method-Override: PUT\r\n", "", "ambiguous"}, // a format, as in Rails
		{"POST /buy.json?_method=PUT", "", "", "ambiguous"},
		{"POST /buy.json", form, "_method=PUT", "ambiguous"},
		{"POST /page", "X-Original-URL: /export.json\r\n", "", "ambiguous"},
		{"POST /export.csv", "X-Original-URL: /export.csv\r\nX-HTTP-Method: POST\r\n", "", "judged"},
		{"GET /page", "X-Original-URL: /export.json\r\n", "", ""},
		{"GET /page", "X-Original-URL: /order/1\r\nX-HTTP-Method: PUT\r\n", "", "ambiguous"},
		{"OPTIONS /any/x", "Access-Control-Request-Method: POST\r\nX-HTTP-Method: POST\r\n", "", "judged"},
		{"POST /order/1?_method=put", "", "", "ambiguous"},
		{"POST /order/1?a=b&%5fmethod=PUT", "", "", "ambiguous"},
		{"POST /order/1?_method=GET&_method=PUT", "", "", "ambiguous"},
		{"POST /order/1", form, "a=b&_method=PUT", "ambiguous"},
		{"POST /order/1", form + "Content-Encoding: gzip\r\n", "a=b", "ambiguous"},
		{"POST /order/1", form, "a=" + strings.Repeat("b", 1<<10), "too_large"},
		{"POST /order/1", json, `{"_method":"put"}`, "ambiguous"},
		{"POST /order/1", "Content-Type: x/JSONx\r\n", ` {"a":1,"\u005fmethod":"PUT"}`, "ambiguous"},
		{"POST /order/1", json, `{"_method":"GET","_method":"PUT"}`, "ambiguous"},
		{"POST /order/1?_method=GET", json, `{"_method":"PUT"}`, "ambiguous"},
		{"POST /order/1", json, `{"_method":"PATCH","method":"PUT"}`, ""},
		{"POST /order/1", json, `[{"_method":"PUT"}]`, ""},
		{"POST /order/1", json, `{"_method":["PUT"]}`, ""},
		{"POST /order/1", json, `{"_method":"PUT",}`, "ambiguous"}, // some take it
		{"POST /order/1", json, `{"a":"PUT"`, ""},
		{"POST /order/1", "Content-Type: application/x-www-form-urlencoded; a=x+json\r\n", `{"_method":"PUT"}`, "ambiguous"},
		{"POST /order/1", json, `{"_method":"PUT","a":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + "}", "ambiguous"}, // deeper than the gate reads
		{"POST /order/1", json, `{"a":"\ud800","_\u006dethod":"PUT"}`, "ambiguous"},
		{"POST /order/1", json, "\ufeff" + `{"_method":"PUT"}`, "ambiguous"}, // Express drops the mark
		{"POST /order/1", json, `{"a":"\ud800","method":"PUT"}`, ""},
		{"POST /order/1", json, `{"a":"\u00e9"}` + "\n" + `{"b":1}`, ""},
		{"POST /page", json, `{"_method":"PUT"}`, ""},
		{"POST /order/1", partType, parts(named("name=_method", "PUT")), "ambiguous"},
		{"POST /order/1", partType, parts(named("name=_method", "DELETE")), ""},
		{"POST /order/1", form, "a=b&_method=PATCH", ""},
		{"POST /order/1?_method=list", "", "", ""},
		{"POST /order/1", "X-HTTP-Method-Override: GET\r\n", "", ""},
		{"POST /page", "X-HTTP-Method-Override: PUT\r\nX-Original-URL: /elsewhere\r\n", "", ""},
		{"POST /page?_method=PUT", form, "_method=PUT&a=" + strings.Repeat("b", 4<<10), ""},
		{"OPTIONS /any/x", "Access-Control-Request-Method: POST\r\n", "", ""},
	} {
		shop := &seen{}
		o := options(shop)
		o.Routes = overridable
		o.Places = placesFunc(func() Reason { return Concurrency })
		addr, _ := gate(t, o)
		resp, _ := talk(t, addr, fmt.Sprintf("%s HTTP/1.1\r\nHost: s\r\n%sContent-Length: %d\r\n\r\n%s", tt.line, tt.headers, len(tt.body), tt.body))
		got := resp.Header.Get("X-Sluice-Reason")
		if got == "concurrency" {
			got = "judged"
		}
		if got != tt.want || (got == "") != (len(shop.all()) == 1) {
			t.Errorf("%s %q %.30q: %q, want %q; shop saw %d", tt.line, tt.headers, tt.body, got, tt.want, len(shop.all()))
		}
	}
}
