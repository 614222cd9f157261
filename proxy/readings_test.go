package proxy

import (
	"fmt"
	"strings"
	"testing"

	"sluice/proxy/param/paramtest"
	"sluice/proxy/route"
)

// bought are routes whose SKU is a query's, a form's and a path's.
func bought(one, digits bool) []Route {
	return []Route{
		{Name: "arg", Match: "POST /arg", Gate: route.Check, SKU: "$arg_sku", OneSource: one, DigitsOnly: digits},
		{Name: "form", Match: "POST /form", Gate: route.Limit, SKU: "$form_sku", OneSource: one, DigitsOnly: digits},
		{Name: "path", Match: "POST /path/{sku}", Gate: route.Check, SKU: "$path_sku", OneSource: one, DigitsOnly: digits},
		{Name: "rest", Match: "/", Gate: route.Pass},
	}
}

func sendForm(t *testing.T, addr, target, body string) (reason, text string) {
	t.Helper()
	resp, text := talk(t, addr, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Type: "+
		"application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", target, len(body), body))
	return resp.Header.Get("X-Sluice-Reason"), text
}

func TestHandle_QueryAndFormMayNotContradictEachOther(t *testing.T) {
	for _, one := range []bool{false, true} {
		to := &recorder{}
		o := options(to)
		o.Routes = bought(one, false)
		addr, _ := gateway(t, o)
		want := "ambiguous"
		if one {
			want = ""
		}
		for target, body := range map[string]string{"/arg?sku=1": "sku=2", "/form?sku=2": "sku=1"} {
			if reason, text := sendForm(t, addr, target, body); reason != want ||
				!one && !strings.Contains(text, `"cause":"query and body differ: $`) {
				t.Errorf("one source: %v, %s with %s: %q, want %q: %s", one, target, body, reason, want, text)
			}
		}
		for target, body := range map[string]string{
			"/arg?sku=1": "sku=1", "/form?sku=1": "sku=1", "/path/1?sku=2": "sku=3", "/arg?sku=1&x=2": "x=3&a=%zz",
			"/?sku=1": "sku=2",
		} {
			if reason, text := sendForm(t, addr, target, body); reason != "" {
				t.Errorf("one source: %v, %s with %s: %s %s", one, target, body, reason, text)
			}
			if got := to.all(); !strings.HasSuffix(got[len(got)-1], body) {
				t.Errorf("%s: the upstream saw %q", target, got[len(got)-1])
			}
		}
	}
}

func TestHandle_QueryMayNotReplaceTheLinesOfACart(t *testing.T) {
	for _, one := range []bool{false, true} {
		o := options(&recorder{})
		o.Routes = []Route{{Name: "cart", Match: "POST /cart", Gate: route.Reserve, SKU: "$json_items.*.sku",
			Quantity: "$json_items.*.qty", OneSource: one}}
		o.Orders = fixedOrders{reservation: Reservation{Serial: "s-1"}}
		addr, _ := gateway(t, o)
		cart := `{"items":[{"sku":"1","qty":1}]}`
		for query, want := range map[string]string{"items=2": "ambiguous", "items[][sku]=2": "ambiguous",
			"items%5B0%5D%5Bqty%5D=2": "ambiguous", "item=2": "", "sku=2": ""} {
			if one {
				want = ""
			}
			resp, text := talk(t, addr, fmt.Sprintf("POST /cart?%s HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Type: "+
				"application/json\r\nContent-Length: %d\r\n\r\n%s", query, len(cart), cart))
			if reason := resp.Header.Get("X-Sluice-Reason"); reason != want {
				t.Errorf("one source: %v, %s: %q, want %q: %s", one, query, reason, want, text)
			}
		}
	}
}

func TestHandle_SKUInDigitsHasOneSpelling(t *testing.T) {
	to := &recorder{}
	o := options(to)
	o.Routes = append([]Route{{Name: "cart", Match: "POST /cart", Gate: route.Reserve, SKU: "$json_items.*.sku",
		Quantity: "$json_items.*.qty", DigitsOnly: true}}, bought(false, true)...)
	o.Orders = fixedOrders{reservation: Reservation{Serial: "s-1"}}
	addr, _ := gateway(t, o)
	for _, row := range paramtest.Readings {
		if row.Kind != paramtest.Number {
			continue
		}
		want := ""
		if row.Decision == paramtest.Invalid {
			want = "bad_request"
		}
		sku := strings.NewReplacer("+", "%2B", "７", "%EF%BC%97").Replace(row.Input)
		for target, body := range map[string]string{"/arg?sku=" + sku: "", "/form": "sku=" + sku, "/path/" + sku: ""} {
			if reason, text := sendForm(t, addr, target, body); reason != want {
				t.Errorf("%s, which is %s: %s %s: %q, want %q: %s", row.Input, row.Reads, target, body, reason, want, text)
			}
		}
		cart := `{"items":[{"sku":"` + row.Input + `","qty":1}]}`
		resp, text := talk(t, addr, fmt.Sprintf("POST /cart HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Type: "+
			"application/json\r\nContent-Length: %d\r\n\r\n%s", len(cart), cart))
		if reason := resp.Header.Get("X-Sluice-Reason"); (reason == "bad_request") != (want != "") {
			t.Errorf("%s: %q: %s", cart, reason, text)
		}
	}
}
