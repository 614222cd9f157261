package proxy

import (
	"encoding/hex"
	stdjson "encoding/json"
	"fmt"
	"testing"
	"time"

	"sluice/proxy/auth"
	"sluice/proxy/route"
)

func TestIdentity_SKUIsFoundWhereTheRouteSays(t *testing.T) {
	const json = "Content-Type: application/json\r\n"
	const form = "Content-Type: application/x-www-form-urlencoded\r\n"
	cases := []struct {
		variable, target, headers, body string
		want                            string // SKU, or the reason of the rejection
	}{
		{"$arg_sku", "/x?sku=7", "", "", "7"},
		{"$arg_sku", "/x?a=b&sku=7%2D1&c", "", "", "7-1"},
		{"$arg_sku", "/x?sku=7&sku=8", "", "", "ambiguous"},
		{"$arg_sku", "/x?sku=7&SKU=8", "", "", "ambiguous"},
		{"$arg_sku", "/x?sku=7&%73ku=8", "", "", "ambiguous"},
		{"$arg_sku", "/x?sku[]=7", "", "", "ambiguous"}, // a list
		{"$arg_sku", "/x?a;sku=7", "", "", "ambiguous"},
		{"$arg_sku", "/x", "", "", "bad_request"},
		{"$arg_sku", "/x?sku=%ff", "", "", "bad_request"},
		{"$arg_sku", "/x?sku=1", form, "sku=2", "ambiguous"}, // shops read one of the two
		{"$arg_sku", "/x?sku=1", form, "sku=1", "1"},
		{"$arg_sku", "/x?sku=1", json, `{"sku":2}`, "ambiguous"},
		{"$arg_sku", "/x?sku=1", json, `{"sku":1}`, "1"},
		{"$json_sku", "/x?sku=2", json, `{"sku":1}`, "ambiguous"},
		{"$json_sku", "/x", json, `{"sku":1,"s_ku":2}`, "ambiguous"},
		{"$arg_sku", "/x?sku=1%C2%A0", "", "", "bad_request"},
		{"$form_sku", "/x", form, "a=1&sku=9", "9"},
		{"$form_sku", "/x?sku=1", form, "sku=9", "ambiguous"},
		{"$form_sku", "/x?sku=9", form, "sku=9", "9"},
		{"$form_sku", "/x", form, "sku=9&sku=1", "ambiguous"},
		{"$form_sku", "/x", json, `{"sku":9}`, "bad_request"},
		{"$json_sku", "/x", json, `{"a":[1],"sku":9}`, "9"},
		{"$json_items.0.sku_id", "/x", json, `{"items":[{"sku_id":"A-1"}]}`, "A-1"},
		{"$json_sku", "/x", json, `{"sku":9,"sku":1}`, "ambiguous"},
		{"$json_sku", "/x", json, `{"sku":9,"Sku":1}`, "ambiguous"},
		{"$json_sku", "/x", json, `{"sku":1e3}`, "bad_request"},
		{"$json_sku", "/x", json, `{"sku":`, "bad_request"},
		{"$json_sku", "/x", json + "Content-Encoding: gzip\r\n", `{"sku":1}`, "ambiguous"},
		{"$json_sku", "/x", json, "{\"sku\":\"\xff\"}", "ambiguous"},
		{"$http_x_sku", "/x", "X-Sku: 5\r\n", "", "5"},
		{"$http_x_sku", "/x", "X-Sku: 5\r\nX-Sku: 6\r\n", "", "ambiguous"},
		{"$cookie_sku", "/x", "Cookie: a=b; sku=\"5\"\r\n", "", "5"},
		{"$remote_addr", "/x", "", "", clientAddress},
		{"$host-$arg_sku", "/x?sku=2", "", "", "shop-2"},
	}
	var found string
	o := options(&recorder{})
	o.Windows = windowFunc(func(_ int64, sku []byte) (time.Duration, bool) { found = string(sku); return 0, true })
	for _, tt := range cases {
		o.Routes = []Route{{Name: "x", Match: "/x", Gate: route.Check, SKU: tt.variable}}
		resp, _, _ := handleOne(t, o, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: Shop:80\r\n%sContent-Length: %d\r\n\r\n%s",
			tt.target, tt.headers, len(tt.body), tt.body))
		if reason := resp.Header.Get("X-Sluice-Reason"); reason != "" {
			found = reason
		}
		if found != tt.want {
			t.Errorf("%s of %s %q %q = %q, want %q", tt.variable, tt.target, tt.headers, tt.body, found, tt.want)
		}
	}
}

func TestIdentity_WhoNamesNoUserIsUnidentified(t *testing.T) {
	const json = "Content-Type: application/json\r\n"
	const form = "Content-Type: application/x-www-form-urlencoded\r\n"
	for _, c := range []struct{ user, headers, body, want string }{
		{"$cookie_uid", "Cookie: a=b\r\n", "", "unidentified user missing: $cookie_uid"},
		{"$cookie_uid", "Cookie: uid=\r\n", "", "unidentified user missing: $cookie_uid"},
		{"$cookie_uid", "Cookie: uid=7%20\r\n", "", "ambiguous value is invalid: $cookie_uid"},
		{"$cookie_uid", "Cookie: uid=7%FE\r\n", "", "bad_request user invalid: $cookie_uid"},
		{"$http_x_user", "", "", "unidentified user missing: $http_x_user"},
		{"$form_uid", form, "a=1", "unidentified user missing: $form_uid"},
		{"$json_uid", json, `{"a":1}`, "unidentified user missing: $json_uid"},
		{"$host-$cookie_uid", "", "", "unidentified user missing: $host-$cookie_uid"},
		{"$signed_uid", "", "", "unidentified user missing: $signed_uid"},
		{"$signed_uid", "Cookie: uid=7.x\r\n", "", "unidentified signature is wrong: $signed_uid"},
		{"$http_x_user", "X-User: a\tb\r\n", "", "bad_request user invalid: $http_x_user"},
		{"$form_uid", json, `{"uid":7}`, "bad_request body is not a form: $form_uid"},
		{"$json_uid", json, `{"uid":`, "bad_request body is not JSON: $json_uid"},
		{"$signed_uid-$json_uid", json + "Cookie: uid=7." + macOf("7", hex.EncodeToString) + "\r\n", `{"uid":`,
			"bad_request body is not JSON: $json_uid"},
		{"$cookie_uid", "Cookie: uid=7; uid=8\r\n", "", "ambiguous duplicate key: uid"},
	} {
		o := options(&recorder{})
		o.Routes = []Route{{Name: "x", Match: "/{sku}", Gate: route.Check, SKU: "$path_sku", User: c.user}}
		o.Auth = auth.VerifierOptions{CookieKey: proofSecret}
		resp, text, _ := handleOne(t, o, fmt.Sprintf("POST /7 HTTP/1.1\r\nHost: shop\r\n%sContent-Length: %d\r\n\r\n%s",
			c.headers, len(c.body), c.body))
		var told struct{ Cause string }
		if err := stdjson.Unmarshal([]byte(text), &told); err != nil {
			t.Errorf("%s: %v", c.user, err)
		}
		if got := resp.Header.Get("X-Sluice-Reason") + " " + told.Cause; got != c.want {
			t.Errorf("%s of %q %q: %s, want %s", c.user, c.headers, c.body, got, c.want)
		}
	}
}
