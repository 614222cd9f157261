package proxy

import (
	"fmt"
	"strings"
	"testing"

	"sluice/proxy/reject"
)

func TestOrderState_IsToldByItsSerial(t *testing.T) {
	to := &recorder{}
	o, _ := reserving(to)
	addr, _ := gateway(t, o)
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"s-1?sku=1001": {200,
			`{"serial":"s-1","sku":"1001","state":"held","deadline":"2100-01-01T00:00:00.123Z"}`},
		"s-1":                                 {200, `"state":"held"`},
		"other":                               {404, `{"serial":"other","state":"none"}`},
		"":                                    {400, "bad_request"},
		"a%20b":                               {400, "bad_request"},
		"s-1?sku=%7b1%7d":                     {400, "bad_request"},
		"s-1?sku=1&sku=":                      {400, "bad_request"},
		"s-1?sku=1001&sku=1002":               {200, `"state":"held"`},
		"s-1?" + strings.Repeat("sku=1&", 17): {400, "bad_request"},
		"%2e%2e?sku=1001":                     {400, "bad_request"},
		"%22quoted%22?sku=":                   {404, `\"quoted\"`},
	} {
		resp, body := talk(t, addr, "GET /.sluice/orders/"+path+" HTTP/1.1\r\nHost: shop\r\n\r\n")
		if resp.StatusCode != want.status || !strings.Contains(body, want.text) ||
			resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s, want %d %s", path, resp.StatusCode, body, want.status, want.text)
		}
	}
	if got := to.all(); len(got) > 0 {
		t.Errorf("the upstream saw %q", got)
	}
}

// The client asks because an order of its own may be there: no rejection of the question says that there is none.
func TestOrderState_NoAnswerDeniesAnOrder(t *testing.T) {
	o, ledger := reserving(&recorder{})
	o.Orders = unreachableOrders{ledger}
	addr, _ := gateway(t, o)
	for _, path := range []string{"s-1?sku=1001", "a%20b", "s-1?sku=1&sku=2"} {
		for _, language := range []string{"en", "zh-CN"} {
			resp, body := talk(t, addr, fmt.Sprintf(
				"GET /.sluice/orders/%s HTTP/1.1\r\nHost: shop\r\nAccept-Language: %s\r\n\r\n", path, language))
			if resp.StatusCode < 400 || deniesOrder(body) {
				t.Errorf("%s: %d %s", path, resp.StatusCode, body)
			}
		}
	}
}

// deniesOrder reports a text that says that no order was placed.
func deniesOrder(body string) bool {
	return strings.Contains(strings.ToLower(body), "this request placed no order") || strings.Contains(body, "本次请求未下单")
}

// unreachableOrders are orders whose store cannot be reached.
type unreachableOrders struct{ *fakeOrders }

func (unreachableOrders) State(int64, []byte, []byte) (OrderState, reject.Reason) {
	return OrderState{}, reject.StockError
}
