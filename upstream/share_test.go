package upstream

import (
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// Pages that are read slowly, however many, leave connections for orders.
func TestOrdersKeepAShareOfTheConnections(t *testing.T) {
	shop := newRawShop(t, func(v *visit) {
		for {
			head, _, err := v.request()
			if err != nil {
				return
			}
			if targetOf(head) == "/page" {
				v.say("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n") // and never more
				continue
			}
			v.say(ok(targetOf(head)))
		}
	})
	o := options(shop.url())
	o.MaxConns = 16
	p := newPool(t, o)
	var pages []*fasthttp.Response
	for i := range 20 {
		out := orderFor("GET", "/page")
		out.Order, out.Stream = false, true
		resp := new(fasthttp.Response)
		want := proxy.Answered
		if i >= 14 {
			want = proxy.NotSent
		}
		if got := p.Send(out, resp); got != want {
			t.Fatalf("page %d: outcome %d, want %d", i, got, want)
		}
		pages = append(pages, resp)
	}
	mustAnswer(t, p, "/order")
	for _, resp := range pages[:14] {
		if err := resp.CloseBodyStream(); err != nil {
			t.Fatal(err)
		}
	}
	out := orderFor("GET", "/again")
	out.Order = false
	if got := p.Send(out, new(fasthttp.Response)); got != proxy.Answered {
		t.Errorf("after the slow ones have gone: outcome %d", got)
	}
}
