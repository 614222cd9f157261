package proxy

import (
	"strings"
	"testing"
)

// Servers behind CGI read "_" and "-" in a field's name alike, and so take the request for an order.
func TestMatch_OverrideOfMethodOrPathIsAmbiguousInEverySpelling(t *testing.T) {
	for _, fields := range []string{
		"X-HTTP-Method-Override: POST\r\n", "X_HTTP_Method_Override: POST\r\n", "x-http_method: post\r\n",
		"X-Method_Override: POST\r\n",
	} {
		to := &recorder{}
		addr, _ := gateway(t, options(to))
		raw := "GET /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\n" + fields + "Connection: close\r\n\r\n"
		resp, body := talk(t, addr, raw)
		if resp.StatusCode != 400 || !strings.Contains(body, "overridden by a header") || len(to.all()) != 0 {
			t.Errorf("%q: %d %s; the upstream was sent %q", fields, resp.StatusCode, body, to.all())
		}
	}
	for _, name := range []string{"X-Original-URL", "X_Rewrite_URL"} {
		fields := name + ": /api/seckill/1001/order\r\n"
		to := &recorder{}
		addr, _ := gateway(t, options(to))
		raw := "POST /page HTTP/1.1\r\nHost: shop\r\n" + fields + "Content-Length: 0\r\nConnection: close\r\n\r\n"
		if resp, body := talk(t, addr, raw); resp.StatusCode != 400 || len(to.all()) != 0 {
			t.Errorf("%q: %d %s; the upstream was sent %q", fields, resp.StatusCode, body, to.all())
		}
	}
}
