package upstream

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// Whoever reads a large page slowly, or keeps a WebSocket open, holds a connection for as long as he likes: all of them
// together leave some for the orders.
func TestOrdersFindAConnectionHoweverManyPagesAreHeld(t *testing.T) {
	shop := newRawShop(t, func(v *visit) {
		head, _, err := v.request()
		if err != nil {
			return
		}
		if targetOf(head) == "/page" {
			v.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", 1<<20, strings.Repeat("x", 1<<10)))
			v.gone()
			return
		}
		v.say(ok(targetOf(head)))
		answerEach(v)
	})
	o := options(shop.url())
	o.MaxConns = 8
	p := newPool(t, o)
	var held []*fasthttp.Response
	for range 2 * o.MaxConns {
		resp := new(fasthttp.Response)
		page := orderFor("GET", "/page")
		page.Order, page.Stream = false, true
		if p.Send(page, resp) == proxy.Answered {
			held = append(held, resp)
		}
	}
	if want := o.MaxConns - o.MaxConns/4; len(held) != want {
		t.Errorf("%d pages are held, want %d of %d connections", len(held), want, o.MaxConns)
	}
	for range 3 { // one that is idle is not for pages either
		mustAnswer(t, p, "/order")
		resp := new(fasthttp.Response)
		page := orderFor("GET", "/page")
		page.Order = false
		if outcome := p.Send(page, resp); outcome != proxy.NotSent {
			t.Errorf("one more page: outcome %d", outcome)
		}
	}
	for _, resp := range held {
		if err := resp.CloseBodyStream(); err != nil && err != io.EOF {
			t.Error(err)
		}
	}
	page := orderFor("GET", "/other")
	page.Order = false
	if outcome := p.Send(page, new(fasthttp.Response)); outcome != proxy.Answered {
		t.Errorf("after all pages: outcome %d", outcome)
	}
}

// A sale whose orders are slow takes most of the connections, and leaves some for the pages; pages leave some for orders.
func TestPagesFindAConnectionHoweverManyOrdersAreHeld(t *testing.T) {
	release := make(chan struct{})
	shop := newRawShop(t, func(v *visit) {
		for {
			head, _, err := v.request()
			if err != nil {
				return
			}
			if targetOf(head) == "/slow" {
				<-release
			}
			v.say(ok(targetOf(head)))
		}
	})
	o := options(shop.url())
	o.MaxConns = 8
	p := newPool(t, o)
	ends := make(chan proxy.Outcome)
	for range 2 * o.MaxConns {
		go func() { ends <- p.Send(orderFor("POST", "/slow"), new(fasthttp.Response)) }()
	}
	most := o.MaxConns - o.MaxConns/8
	for range 2*o.MaxConns - most { // the others wait for the shop
		if outcome := <-ends; outcome != proxy.NotSent {
			t.Errorf("an order more than there are connections for: outcome %d", outcome)
		}
	}
	for range 3 {
		page := orderFor("GET", "/page")
		page.Order = false
		if outcome := p.Send(page, new(fasthttp.Response)); outcome != proxy.Answered {
			t.Errorf("a page beside a sale: outcome %d", outcome)
		}
	}
	close(release)
	for range most {
		if outcome := <-ends; outcome != proxy.Answered {
			t.Errorf("a slow order: outcome %d", outcome)
		}
	}
	if x := p.targets.Load().all[0]; x.orders != 0 || x.pages != 0 {
		t.Errorf("%d orders and %d pages are counted, and none is under way", x.orders, x.pages)
	}
}
