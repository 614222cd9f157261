package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// A page that goes on by itself, or a link that is followed, must never be an order.
func TestRetryPath_NeverLeadsToWhereOrdersArePlaced(t *testing.T) {
	o := options(&recorder{})
	o.Responses.Jitter = 2 * time.Second
	o.Routes = append([]Route{}, orderRoutes...)
	o.Routes[0].Match = "/api/seckill/{sku}/order" // an order by GET as well
	o.Routes[1].SKU = "$http_sku"
	o.Schedule = scheduleFunc(func(string, bool) (reject.Reason, time.Duration) { return reject.NotStarted, time.Minute })
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	const place = "/api/seckill/1001/order"
	for _, c := range []struct{ line, referer, want string }{
		{"GET " + place, "", "/"},
		{"POST " + place, "https://shop.example/item?id=1&from=a", "/item?id=1&amp;from=a"},
		{"POST " + place, "https://evil.example/item", "/"},
		{"POST " + place, "https://shop.example.evil/", "/"},
		{"POST " + place, "https://shop.example//evil.example/", "/"},
		{"POST " + place, `https://shop.example/"onclick=x`, "/"},
		{"POST /search/?q=1", "https://shop.example/list#top", "/list"},
		{"POST " + place, "https://shop.example" + place, "/"},
		{"POST " + place, "https://shop.example/API/%73eckill/1001/order/?x=1", "/"},
		{"POST " + place, "https://shop.example//api/seckill/1001/order", "/"},
		{"POST " + place, "https://shop.example/%E5%95%86;a=1?x=1", "/%E5%95%86;a=1?x=1"},
		{"GET /search/?q=1", "https://shop.example/list", "/search/?q=1"},
	} {
		x := requested(t, p, c.line+" HTTP/1.1\r\nHost: shop.example\r\nCookie: uid=7\r\nSku: 1001\r\n"+
			"Referer: "+c.referer+"\r\nAccept: text/html\r\n\r\n")
		p.serve(x.Ctx(), x)
		text := string(x.Ctx().Response.Body())
		for _, way := range []string{`<a href="` + c.want + `">`, `data-go="` + c.want + `"`, `;url=` + c.want + `">`} {
			if !strings.Contains(text, way) {
				t.Errorf("%s from %s: want it to lead to %s: %s", c.line, c.referer, c.want, text)
			}
		}
	}
}

func TestRejection_BrowserGetsAWholePage(t *testing.T) {
	o := options(&recorder{})
	closedFor(reject.SoldOut)(&o)
	addr, _ := gateway(t, o)
	resp, body := talk(t, addr, "POST /api/seckill/1001/order HTTP/1.1\r\nHost: x\r\nCookie: uid=7\r\n"+
		"Accept: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	if resp.StatusCode != http.StatusConflict || resp.Header.Get("Vary") == "" || !deniesOrder(body) ||
		!strings.HasSuffix(strings.TrimSpace(body), "</html>") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
}

// The link of an order whose state can be asked for leads to that state, by the serial that the ledger gave it.
func TestRejection_UnknownOutcomeLinksTheOrdersState(t *testing.T) {
	o, ledger := reserving(&recorder{})
	ledger.decided, ledger.answer = true, Reservation{Reason: reject.InProgress, Serial: "s/1"}
	o.Routes[0].Gate = route.Reserve
	addr, _ := gateway(t, o)
	resp, body := talk(t, addr, buying)
	if want := `</.sluice/orders/s%2F1?sku=1001>; rel="status"`; resp.Header.Get("Link") != want {
		t.Errorf("Link %q, want %q", resp.Header.Get("Link"), want)
	}
	if !strings.Contains(body, `"order":"/.sluice/orders/s%2F1?sku=1001"`) {
		t.Errorf("the response has no link: %s", body)
	}
	ledger.answer.Serial = ""
	if resp, body := talk(t, addr, buying); resp.Header.Get("Link") != "" || strings.Contains(body, `"order"`) {
		t.Errorf("an order without a serial has a link: %v %s", resp.Header, body)
	}
}
