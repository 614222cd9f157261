package proxy

import (
	"strings"
	"testing"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

func TestRejection_HasTheClientsFormatAndLanguage(t *testing.T) {
	o := options(&recorder{})
	closedFor(reject.SoldOut)(&o)
	addr, _ := gateway(t, o)
	const page = "text/html; charset=utf-8"
	for _, tt := range []struct{ headers, contentType, text string }{
		{"Accept: text/html,*/*\r\nAccept-Language: zh-CN,zh;q=0.9,en;q=0.8\r\n", page, "已售罄"},
		{"Accept: text/html\r\nAccept-Language: en-GB\r\n", page, "Sold out"},
		{"Accept: application/json\r\nAccept-Language: fr, zh;q=0.1\r\n", "application/problem+json", "已售罄"},
		{"", "application/problem+json", "this request placed no order"},
	} {
		resp, body := talk(t, addr, orderWith("Host: shop\r\n", "Host: shop\r\nOrigin: https://shop\r\n"+tt.headers))
		if got := resp.Header.Get("Content-Type"); got != tt.contentType ||
			!strings.Contains(strings.ToLower(body), strings.ToLower(tt.text)) {
			t.Errorf("%q: %s %q", tt.headers, got, body)
		}
		if resp.Header.Get("Access-Control-Allow-Origin") != "https://shop" || resp.Header.Get("Retry-After") != "" {
			t.Errorf("%q: headers %v", tt.headers, resp.Header)
		}
	}
}

func TestRejection_EnvelopeIsTheFormOfTheConfiguration(t *testing.T) {
	o := options(&recorder{})
	o.Responses.Format = reject.Envelope
	closedFor(reject.SoldOut)(&o)
	addr, _ := gateway(t, o)
	resp, body := talk(t, addr, order)
	if resp.StatusCode != 200 || body != `{"code":40901,"msg":"Sold out","data":null}` {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
}

// The cause names what of the route's configuration the request lacks, never a value of the request.
func TestRejection_TellsItsCause(t *testing.T) {
	addr, p := gateway(t, options(&recorder{}))
	const override = "X-HTTP-Method-Override: PUT\r\n"
	for raw, want := range map[string]struct {
		status int
		cause  string
	}{
		orderWith("uid=7", "other=7"):          {401, "user missing: $cookie_uid"},
		orderWith("1001", "%7b1001"):           {400, "sku invalid: $path_sku"},
		orderWith("uid=7", "uid=7; uid=8"):     {400, "duplicate key: uid"},
		orderWith("Cookie", override+"Cookie"): {400, "method or path is overridden by a header"},
	} {
		resp, body := talk(t, addr, raw)
		if resp.StatusCode != want.status || !strings.Contains(body, `"cause":"`+want.cause+`"`) {
			t.Errorf("%q: %d %s, want %v", raw, resp.StatusCode, body, want)
		}
	}
	shown := testkit.Series(t, p.Counters())
	for _, cause := range []string{"user_missing", "sku_invalid", "duplicate_key", "method_override"} {
		if n := shown["sluice_rejection_details_total "+cause]; n != 1 {
			t.Errorf("%s is counted %v times, want once", cause, n)
		}
	}
}
