package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// A buyer who had no answer asks again. To that buyer a limit, or a ledger that cannot be reached, must not say that there is
// no order: nobody has looked.
func TestNobodyIsToldThatThereIsNoOrderUnlessItIsKnown(t *testing.T) {
	const denies = "your order was not placed"
	for reason, want := range map[Reason]bool{StockError: false, Concurrency: false, SoldOut: true, UnknownSKU: true} {
		o, c := reserving(&seen{})
		c.says = Taken{Reason: reason}
		addr, _ := gate(t, o)
		if _, body := talk(t, addr, buying); strings.Contains(strings.ToLower(body), denies) != want || !strings.Contains(body, reason.String()) {
			t.Errorf("%v: it must say %q: %v: %s", reason, denies, want, body)
		}
	}
	for _, accept := range []string{"text/html", "application/json"} {
		o, _ := reserving(&seen{})
		o.Windows = full{}
		addr, _ := gate(t, o)
		_, body := talk(t, addr, strings.Replace(buying, "Host: shop\r\n", "Host: shop\r\nAccept: "+accept+"\r\n", 1))
		if strings.Contains(strings.ToLower(body), denies) || !strings.Contains(body, "try again in a moment") {
			t.Errorf("%s: %s", accept, body)
		}
	}
}

// full is a window that admits nobody.
type full struct{}

func (full) Take(int64, []byte) (time.Duration, bool) { return 0, false }
func (full) Full(int64, []byte) (time.Duration, bool) { return 0, true }

func TestNoAnswerToAQuestionDeniesAnOrder(t *testing.T) {
	o, c := reserving(&seen{})
	o.Orders = silent{c}
	addr, _ := gate(t, o)
	for _, path := range []string{"/.sluice/orders/s-1?sku=1001", "/.sluice/orders/a%20b", "/.sluice/orders/s-1?sku=1&sku=2"} {
		for _, language := range []string{"en", "zh-CN"} {
			resp, body := talk(t, addr, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: shop\r\nAccept-Language: %s\r\n\r\n", path, language))
			if resp.StatusCode < 400 || strings.Contains(body, notOrdered.in[english]) || strings.Contains(body, notOrdered.in[chinese]) {
				t.Errorf("%s: %d %s", path, resp.StatusCode, body)
			}
		}
	}
}

// silent is a ledger that cannot be reached.
type silent struct{ *clerk }

func (silent) State(int64, []byte, []byte) (OrderState, Reason) { return OrderState{}, StockError }

// The gate's own fault may strike after the shop was asked.
func TestAFaultOnTheWayBackDeniesNoOrder(t *testing.T) {
	o, c := reserving(shopFunc(func(*Outgoing, *fasthttp.Response) Outcome { panic("on the way back") }))
	addr, _ := gate(t, o)
	resp, body := talk(t, addr, buying)
	if resp.StatusCode != 500 || strings.Contains(body, notOrdered.in[english]) || !strings.Contains(body, unknownYet.in[english]) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if f := c.settled(); len(f) != 1 || f[0] != Unsure {
		t.Errorf("settled %v: whether there is an order, nobody knows", f)
	}
}

func TestWhoObservesAnswersEveryQuestion(t *testing.T) {
	o, _ := reserving(&seen{})
	o.Observe, o.Pace = true, func() Pace { return never{} }
	addr, _ := gate(t, o)
	if resp, body := talk(t, addr, "GET /.sluice/orders/s-1?sku=1001 HTTP/1.1\r\nHost: shop\r\n\r\n"); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
