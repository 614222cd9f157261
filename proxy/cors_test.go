package proxy

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/proxy/reject"
	"sluice/upstream"
)

// corsFields are the fields that let a page of another origin read an answer: whose page, and whether with cookies.
func corsFields(t *testing.T, origins []string, request string) string {
	t.Helper()
	o, _ := showing(StockStatusOptions{Few: 10})
	closedFor(reject.SoldOut)(&o)
	o.Responses.Origins = origins
	addr, _ := gateway(t, o)
	resp, _ := talk(t, addr, request)
	h := resp.Header
	return strings.TrimSpace(resp.Status[:3] + " " + h.Get("Access-Control-Allow-Origin") + " " +
		h.Get("Access-Control-Allow-Credentials"))
}

func TestCORS_OnlyNamedOriginsReadWithCredentials(t *testing.T) {
	named := []string{"https://shop.example", "https://m.shop.example:8443"}
	from := func(origin string) string {
		return orderWith("Host: shop\r\n", "Host: shop\r\nOrigin: "+origin+"\r\n")
	}
	for _, tt := range []struct {
		origins      []string
		origin, want string
	}{
		{nil, "https://shop.example", "409"},
		{named, "https://shop.example", "409 https://shop.example true"},
		{named, "https://m.shop.example:8443", "409 https://m.shop.example:8443 true"},
		{named, "https://m.shop.example", "409"},
		{named, "http://shop.example", "409"},
		{named, "https://shop.example.evil", "409"},
		{named, "https://SHOP.example", "409"},
		{named, "null", "409"},
		{named, "*", "409"},
		{[]string{"*"}, "https://evil.example", "409 *"},
		{[]string{"*"}, "null", "409 *"},
	} {
		if got := corsFields(t, tt.origins, from(tt.origin)); got != tt.want {
			t.Errorf("cors = %q, from %s: %q, want %q", tt.origins, tt.origin, got, tt.want)
		}
	}
}

// The answer about stock may be kept by shared caches, so it varies by origin.
func TestCORS_AppliesToTheProxysOwnAnswers(t *testing.T) {
	for _, tt := range []struct {
		origins       []string
		request, want string
	}{
		{nil, "GET /.sluice/stock/open HTTP/1.1", "200"},
		{[]string{"https://a.example"}, "GET /.sluice/stock/open HTTP/1.1", "200 https://a.example true"},
		{[]string{"*"}, "GET /.sluice/stock/open HTTP/1.1", "200 *"},
		{nil, "OPTIONS /.sluice/stock/open HTTP/1.1", "204"},
		{[]string{"https://b.example"}, "OPTIONS /.sluice/stock/open HTTP/1.1", "204"},
		{[]string{"https://a.example"}, "OPTIONS /.sluice/stock/open HTTP/1.1", "204 https://a.example true"},
		{[]string{"*"}, "OPTIONS /.sluice/stock/open HTTP/1.1", "204 *"},
	} {
		got := corsFields(t, tt.origins, tt.request+"\r\nHost: shop\r\nOrigin: https://a.example\r\n"+
			"Access-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: if-none-match\r\n\r\n")
		if got != tt.want {
			t.Errorf("cors = %q, %s: %q, want %q", tt.origins, tt.request, got, tt.want)
		}
	}
}

// What the shop allows is the shop's affair: its preflights and its answers pass unchanged.
func TestCORS_OfTheUpstreamPassesUnchanged(t *testing.T) {
	o := options(upstreamFunc(func(_ *upstream.Request, out *fasthttp.Response) upstream.Outcome {
		out.SetStatusCode(204)
		out.Header.Set("Access-Control-Allow-Origin", "https://partner.example")
		out.Header.Set("Access-Control-Allow-Methods", "POST")
		return upstream.Answered
	}))
	addr, _ := gateway(t, o)
	resp, _ := talk(t, addr, "OPTIONS /api/seckill/1/order HTTP/1.1\r\nHost: s\r\nOrigin: https://partner.example\r\n"+
		"Access-Control-Request-Method: POST\r\n\r\n")
	h := resp.Header
	if resp.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != "https://partner.example" ||
		h.Get("Access-Control-Allow-Credentials") != "" || h.Get("Access-Control-Allow-Methods") != "POST" {
		t.Errorf("%d %v", resp.StatusCode, h)
	}
}
