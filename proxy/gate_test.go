package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

const order = "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nContent-Length: 2\r\n\r\nhi"

func TestAdmittedRequestReachesTheShopAsItWasJudged(t *testing.T) {
	shop := &seen{}
	addr, _ := gate(t, options(shop))
	resp, body := talk(t, addr, "POST /api/seckill/1001/order?x=1&&y HTTP/1.1\r\nHost: Shop.example:80\r\nCookie: uid=7\r\ncookie: b=2\r\nX-Forwarded-For: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n"+
		"Connection: X-Hop, keep-alive\r\nX-Hop: gone\r\nSluice-Sku: forged\r\nX-Request-Id: abc\r\nContent-Length: 2\r\n\r\nhi")
	if resp.StatusCode != 200 || body != "from the shop" || resp.Header.Get("X-Request-Id") != "abc" {
		t.Fatalf("answer: %v %q", resp, body)
	}
	want := "POST /api/seckill/1001/order?x=1&&y HTTP/1.1\r\nHost: Shop.example:80\r\nCookie: uid=7\r\ncookie: b=2\r\nX-Request-Id: abc\r\n" +
		"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: Shop.example:80\r\nVia: 1.1 sluice\r\nContent-Length: 2\r\n\r\nhi"
	if got := shop.all(); len(got) != 1 || got[0] != want {
		t.Errorf("shop saw %q\nwant %q", got, want)
	}
}

func TestRefusedRequestNeverReachesTheShop(t *testing.T) {
	for _, tt := range []struct {
		name   string
		set    func(*Options)
		raw    string
		status int
		reason string
	}{
		{"sold out", func(o *Options) { o.Stock.(*shelf).closed["1001"] = SoldOut }, order, 409, "sold_out"},
		{"unknown", func(o *Options) { o.Stock.(*shelf).closed["1001"] = UnknownSKU }, order, 404, "unknown_sku"},
		{"stock error", func(o *Options) { o.Stock.(*shelf).closed["1001"] = StockError }, order, 503, "stock_error"},
		{"window", func(o *Options) {
			o.Windows = windowsFunc(func(int64, []byte) (time.Duration, bool) { return time.Millisecond, false })
		}, order, 429, "window"},
		{"concurrency", func(o *Options) { o.Places = placesFunc(func() Reason { return Concurrency }) }, order, 429, "concurrency"},
		{"queue", func(o *Options) { o.Places = placesFunc(func() Reason { return QueueTimeout }) }, order, 429, "queue_timeout"},
		{"no user", nil, strings.Replace(order, "uid=7", "other=7", 1), 400, "bad_request"},
		{"empty user", nil, strings.Replace(order, "uid=7", "uid=", 1), 400, "bad_request"},
		{"two users", nil, strings.Replace(order, "uid=7", "uid=7; uid=8", 1), 400, "ambiguous"},
		{"two cookie lines", nil, strings.Replace(order, "Cookie: uid=7", "Cookie: uid=7\r\nCookie: UID=8", 1), 400, "ambiguous"},
		{"space in SKU", nil, strings.Replace(order, "1001", "10%2001", 1), 400, "bad_request"},
		{"brace in SKU", nil, strings.Replace(order, "1001", "%7b1001%7d", 1), 400, "bad_request"},
		{"long SKU", nil, strings.Replace(order, "1001", strings.Repeat("1", 129), 1), 400, "bad_request"},
		{"letter case", nil, strings.Replace(order, "/api", "/API", 1), 400, "ambiguous"},
		{"slash at the end", nil, strings.Replace(order, "/order", "/order/", 1), 400, "ambiguous"},
		{"dot", nil, strings.Replace(order, "/api", "/./api", 1), 400, "ambiguous"},
		{"dots", nil, strings.Replace(order, "/api", "/a/../api", 1), 400, "ambiguous"},
		{"escaped", nil, strings.Replace(order, "/order", "/%6frder", 1), 400, "ambiguous"},
		{"escaped slash", nil, strings.Replace(order, "/order", "%2Forder", 1), 400, "ambiguous"},
		{"parameter", nil, strings.Replace(order, "/order", "/order;x", 1), 400, "ambiguous"},
		{"escaped question mark", nil, strings.Replace(order, "/order", "/order%3f", 1), 400, "ambiguous"},
		{"escaped twice", nil, strings.Replace(order, "/api", "/%252e/api", 1), 400, "ambiguous"},
		{"large body announced", nil, strings.Replace(order, "Content-Length: 2", "Content-Length: 99999", 1), 413, "too_large"},
		{"large body in chunks", nil, strings.Replace(order, "Content-Length: 2\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n800\r\n"+strings.Repeat("x", 2048)+"\r\n0\r\n\r\n", 1), 413, "too_large"},
		{"malformed", nil, "POST /api HTTP/1.1\nHost: x\r\n\r\n", 400, "malformed"},
		{"no route", func(o *Options) { o.Routes = o.Routes[:1] }, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n", 404, "no_route"},
		{"panic", func(o *Options) {
			o.Windows = windowsFunc(func(int64, []byte) (time.Duration, bool) { panic("on purpose") })
		}, order, 500, "internal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shop := &seen{}
			o := options(shop)
			if tt.set != nil {
				tt.set(&o)
			}
			addr, p := gate(t, o)
			resp, body := talk(t, addr, tt.raw)
			if resp.StatusCode != tt.status || resp.Header.Get("X-Sluice-Reason") != tt.reason {
				t.Errorf("answer %d %s %q, want %d %s", resp.StatusCode, resp.Header.Get("X-Sluice-Reason"), body, tt.status, tt.reason)
			}
			if got := shop.all(); len(got) > 0 {
				t.Errorf("the shop saw %q", got)
			}
			if !strings.Contains(body, tt.reason) || resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("answer %v %q lacks reason or no-store", resp.Header, body)
			}
			if n := refusedTotal(p); n[tt.reason] != 1 || len(n) != 1 {
				t.Errorf("counted %v, want 1 %s", n, tt.reason)
			}
		})
	}
}

// refusedTotal adds up the counted refusals by reason.
func refusedTotal(p *Proxy) map[string]uint64 {
	n := map[string]uint64{}
	for _, tallies := range p.counts.routes {
		for i := range tallies {
			for reason := range numReasons {
				if c := tallies[i].refused[reason].Load(); c > 0 {
					n[reason.String()] += c
				}
			}
		}
	}
	return n
}

func TestWhatTheShopOwesIsToldApart(t *testing.T) {
	for outcome, want := range map[Outcome]int{NotSent: 503, TimedOut: 504, Broken: 502} {
		addr, _ := gate(t, options(shopFunc(func(*Outgoing, *fasthttp.Response) Outcome { return outcome })))
		resp, body := talk(t, addr, order)
		if resp.StatusCode != want {
			t.Errorf("outcome %d: %d %q, want %d", outcome, resp.StatusCode, body, want)
		}
		if unsure := strings.Contains(body, "do not know"); unsure != (outcome != NotSent) {
			t.Errorf("outcome %d: %q", outcome, body)
		}
	}
}

func TestEveryAdmittedRequestLeavesOnce(t *testing.T) {
	stock := &shelf{}
	o := options(shopFunc(func(*Outgoing, *fasthttp.Response) Outcome { panic("on purpose") }))
	o.Stock = stock
	addr, _ := gate(t, o)
	talk(t, addr, order)
	if stock.entered != 1 || stock.left != 1 {
		t.Errorf("entered %d, left %d", stock.entered, stock.left)
	}
}

func TestObserveCountsAndLetsThrough(t *testing.T) {
	shop := &seen{}
	o := options(shop)
	o.Observe = true
	o.Stock.(*shelf).closed["1001"] = SoldOut
	addr, p := gate(t, o)
	for _, raw := range []string{order, strings.Replace(order, "uid=7", "", 1), strings.Replace(order, "/order", "/order/", 1)} {
		if resp, body := talk(t, addr, raw); resp.StatusCode != 200 {
			t.Errorf("%q: %d %q", raw, resp.StatusCode, body)
		}
	}
	if len(shop.all()) != 3 || len(refusedTotal(p)) != 0 {
		t.Errorf("shop saw %d, refused %v", len(shop.all()), refusedTotal(p))
	}
	observed := 0
	for i := range p.counts.of("order") {
		for _, reason := range []Reason{SoldOut, BadRequest, Ambiguous} {
			observed += int(p.counts.of("order")[i].observed[reason].Load())
		}
	}
	if observed != 3 {
		t.Errorf("observed %d, want 3", observed)
	}
}

func TestPreflightIsNeverJudged(t *testing.T) {
	shop := &seen{}
	o := options(shop)
	o.Routes = []Route{{Name: "all", Match: "/", Gate: Check, SKU: "$arg_sku"}}
	addr, _ := gate(t, o)
	resp, body := talk(t, addr, "OPTIONS /x HTTP/1.1\r\nHost: s\r\nOrigin: https://a\r\nAccess-Control-Request-Method: POST\r\n\r\n")
	if resp.StatusCode != 200 {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
}

func TestRefusalSpeaksTheClientsFormatAndLanguage(t *testing.T) {
	o := options(&seen{})
	o.Stock.(*shelf).closed["1001"] = SoldOut
	addr, _ := gate(t, o)
	for _, tt := range []struct{ headers, contentType, text string }{
		{"Accept: text/html,*/*\r\nAccept-Language: zh-CN,zh;q=0.9,en;q=0.8\r\n", "text/html; charset=utf-8", "已售罄"},
		{"Accept: text/html\r\nAccept-Language: en-GB\r\n", "text/html; charset=utf-8", "Sold out"},
		{"Accept: application/json\r\nAccept-Language: fr, zh;q=0.1\r\n", "application/problem+json", "已售罄"},
		{"", "application/problem+json", "your order was not placed"},
	} {
		resp, body := talk(t, addr, strings.Replace(order, "Host: shop\r\n", "Host: shop\r\nOrigin: https://shop\r\n"+tt.headers, 1))
		if resp.Header.Get("Content-Type") != tt.contentType || !strings.Contains(strings.ToLower(body), strings.ToLower(tt.text)) {
			t.Errorf("%q: %s %q", tt.headers, resp.Header.Get("Content-Type"), body)
		}
		if resp.Header.Get("Access-Control-Allow-Origin") != "https://shop" || resp.Header.Get("Retry-After") != "" {
			t.Errorf("%q: headers %v", tt.headers, resp.Header)
		}
	}
}

func TestEnvelopeIsTheShopsOwnForm(t *testing.T) {
	o := options(&seen{})
	o.Responses.Format = Envelope
	o.Stock.(*shelf).closed["1001"] = SoldOut
	addr, _ := gate(t, o)
	resp, body := talk(t, addr, order)
	if resp.StatusCode != 200 || body != `{"code":40901,"msg":"Sold out","data":null}` {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
}

func TestHeadRefusalHasNoBody(t *testing.T) {
	o := options(&seen{})
	o.Routes = []Route{{Name: "x", Match: "GET /x/{sku}", Gate: Check, SKU: "$path_sku"}}
	o.Stock.(*shelf).closed["1"] = SoldOut
	addr, _ := gate(t, o)
	resp, body := talk(t, addr, "HEAD /x/1 HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
	if resp.StatusCode != 409 || body != "" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
}

func TestKeepAliveSurvivesARefusal(t *testing.T) {
	o := options(&seen{})
	o.Stock.(*shelf).closed["1001"] = SoldOut
	addr, _ := gate(t, o)
	resp, _ := talk(t, addr, strings.Repeat(order, 3))
	if resp.Close {
		t.Error("a refusal with nothing left unread closed the connection")
	}
}

func TestFieldsAreFoundWhereTheRouteSays(t *testing.T) {
	json := "Content-Type: application/json\r\n"
	form := "Content-Type: application/x-www-form-urlencoded\r\n"
	for _, tt := range []struct {
		variable, target, headers, body string
		want                            string // SKU, or the reason of the refusal
	}{
		{"$arg_sku", "/x?sku=7", "", "", "7"},
		{"$arg_sku", "/x?a=b&sku=7%2D1&c", "", "", "7-1"},
		{"$arg_sku", "/x?sku=7&sku=8", "", "", "ambiguous"},
		{"$arg_sku", "/x?sku=7&SKU=8", "", "", "ambiguous"},
		{"$arg_sku", "/x?sku=7&%73ku=8", "", "", "ambiguous"},
		{"$arg_sku", "/x?sku[]=7", "", "", "ambiguous"},
		{"$arg_sku", "/x?a;sku=7", "", "", "ambiguous"},
		{"$arg_sku", "/x", "", "", "bad_request"},
		{"$arg_sku", "/x?sku=%ff", "", "", "bad_request"},
		{"$arg_sku", "/x?sku=1", form, "sku=2", "ambiguous"},
		{"$form_sku", "/x", form, "a=1&sku=9", "9"},
		{"$form_sku", "/x?sku=1", form, "sku=9", "ambiguous"},
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
		{"$remote_addr", "/x", "", "", "127.0.0.1"},
		{"$host-$arg_sku", "/x?sku=2", "", "", "shop-2"},
	} {
		var asked string
		o := options(&seen{})
		o.Routes = []Route{{Name: "x", Match: "/x", Gate: Check, SKU: tt.variable}}
		o.Windows = windowsFunc(func(_ int64, sku []byte) (time.Duration, bool) { asked = string(sku); return 0, true })
		addr, _ := gate(t, o)
		resp, _ := talk(t, addr, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: Shop:80\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", tt.target, tt.headers, len(tt.body), tt.body))
		if reason := resp.Header.Get("X-Sluice-Reason"); reason != "" {
			asked = reason
		}
		if asked != tt.want {
			t.Errorf("%s of %s %q %q = %q, want %q", tt.variable, tt.target, tt.headers, tt.body, asked, tt.want)
		}
	}
}
