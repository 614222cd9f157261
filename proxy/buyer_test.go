package proxy

import (
	"slices"
	"testing"
)

// doorman is a stock that refuses one user, and remembers who came.
type doorman struct {
	*shelf
	duplicate string
	came      []string
}

func (d *doorman) Enter(_ int64, _, user []byte) Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.came = append(d.came, string(user))
	if string(user) == d.duplicate {
		return Duplicate
	}
	return Admitted
}

func TestStockLearnsWhoBuysAndADuplicateNeverReachesTheShop(t *testing.T) {
	shop := &seen{}
	o := options(shop)
	stock := &doorman{shelf: &shelf{closed: map[string]Reason{}}, duplicate: "7"}
	o.Stock = stock
	o.Routes = append([]Route{{Name: "anybody", Match: "POST /anybody/{sku}", Gate: Check, SKU: "$path_sku"}}, o.Routes...)
	addr, _ := gate(t, o)
	for _, c := range []struct {
		target string
		status int
	}{
		{"/api/seckill/1001/order HTTP/1.1\r\nCookie: uid=7", 409},
		{"/api/seckill/1001/order HTTP/1.1\r\nCookie: uid=8", 200},
		{"/anybody/1001 HTTP/1.1\r\nCookie: uid=7", 200}, // the route names no user
	} {
		resp, body := talk(t, addr, "POST "+c.target+"\r\nHost: shop\r\nContent-Length: 2\r\n\r\nhi")
		if resp.StatusCode != c.status || c.status == 409 && resp.Header.Get("X-Sluice-Reason") != "duplicate" {
			t.Errorf("%s: %d %s", c.target, resp.StatusCode, body)
		}
	}
	if n := len(shop.all()); n != 2 {
		t.Errorf("%d requests reached the shop, want 2", n)
	}
	stock.mu.Lock()
	defer stock.mu.Unlock()
	if want := []string{"7", "8", ""}; !slices.Equal(stock.came, want) {
		t.Errorf("the stock saw users %q, want %q", stock.came, want)
	}
	if stock.left != 2 {
		t.Errorf("%d left, want 2: a duplicate never entered", stock.left)
	}
}
