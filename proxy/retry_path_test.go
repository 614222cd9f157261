package proxy

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// replied is the gate's own answer, read as a client does.
func replied(t *testing.T, x *exchange) *fasthttp.Response {
	t.Helper()
	var resp fasthttp.Response
	if err := resp.Read(bufio.NewReader(bytes.NewReader(x.reply.appendTo(nil, "", false)))); err != nil {
		t.Fatal(err)
	}
	return &resp
}

// refusedWith has p refuse one request that it reads.
func refusedWith(t *testing.T, p *Proxy, reason Reason, wait time.Duration, raw string) *fasthttp.Response {
	t.Helper()
	x := requested(t, p, raw)
	r := p.begin(x)
	p.takeID(r)
	p.match(r)
	r.refused(reason, wait)
	p.refuse(r, reason, wait)
	return replied(t, x)
}

func pagesOf(t *testing.T, set func(*Responses)) *Proxy {
	t.Helper()
	o := options(shopFunc(answering))
	o.Responses.Languages, o.Responses.Jitter = []string{"zh-CN", "en"}, 2*time.Second
	if set != nil {
		set(&o.Responses)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A page that goes on by itself, or a link that is followed, must never be an order.
func TestPageNeverLeadsToWhereOrdersArePlaced(t *testing.T) {
	p := pagesOf(t, nil)
	p.routes[0].pattern.method = "" // an order by GET
	for _, c := range []struct{ raw, want string }{
		{"GET /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/item?id=1&from=a\r\n", "/item?id=1&amp;from=a"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://evil.example/item\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example.evil/\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example//evil.example/\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/\"onclick=x\r\n", "/"},
		{"POST /search/?q=1 HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/list#top\r\n", "/list"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/api/seckill/1001/order\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/API/%73eckill/1001/order/?x=1\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/%E5%95%86;a=1?x=1\r\n", "/%E5%95%86;a=1?x=1"},
		{"GET /search/?q=1 HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/list\r\n", "/search/?q=1"},
	} {
		text := string(refusedWith(t, p, NotStarted, time.Minute, c.raw+"Accept: text/html\r\n\r\n").Body())
		if !strings.Contains(text, `<a href="`+c.want+`">`) || !strings.Contains(text, `data-go="`+c.want+`"`) || !strings.Contains(text, ";url="+c.want+`">`) {
			t.Errorf("%s: want it to lead to %s: %s", c.raw, c.want, text)
		}
	}
}

func TestRefusedBrowserGetsThePageOnTheWire(t *testing.T) {
	addr, _ := gate(t, func() Options { o := options(shopFunc(answering)); soldOut(&o); return o }())
	resp, body := talk(t, addr, "POST /api/seckill/1001/order HTTP/1.1\r\nHost: x\r\nCookie: uid=7\r\nAccept: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	if resp.StatusCode != http.StatusConflict || resp.Header.Get("Vary") == "" || !strings.Contains(body, notOrdered.in[english]) || !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
}
