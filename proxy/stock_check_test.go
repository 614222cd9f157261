package proxy

import (
	"slices"
	"testing"

	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// userStock is a stock of which one user has bought already. It keeps the users that it is asked about.
type userStock struct {
	*stockMap
	bought string
	users  []string
}

func (s *userStock) Enter(_ int64, _, user []byte) reject.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = append(s.users, string(user))
	if string(user) == s.bought {
		return reject.Duplicate
	}
	return reject.Admitted
}

// unreadStock has read no SKU but "known": all that is asked of others waits until it is closed.
type unreadStock struct {
	*stockMap
	waiting chan struct{}
	read    chan struct{}
}

func (s unreadStock) wait(sku []byte) (reason reject.Reason, waited bool) {
	if string(sku) == "known" {
		return reject.Admitted, false
	}
	s.waiting <- struct{}{}
	<-s.read
	return reject.UnknownSKU, true
}

func (s unreadStock) AwaitReading(_ int64, sku []byte, on interface{ StepAside() }) (reject.Reason, bool) {
	on.StepAside()
	return s.wait(sku)
}

func (s unreadStock) Enter(_ int64, sku, _ []byte) reject.Reason {
	reason, _ := s.wait(sku)
	return reason
}

// A crowd that asks for unknown SKUs must not keep the buyers of a known one out of the shop.
func TestStockCheck_SKUThatIsNotReadYetTakesNoSlot(t *testing.T) {
	stock := unreadStock{&stockMap{}, make(chan struct{}, 1), make(chan struct{})}
	o := options(&recorder{})
	o.Stock = stock
	o.Concurrency = &oneSlot{}
	addr, _ := gateway(t, o)
	order := func(sku string) string {
		resp, _ := talk(t, addr, "POST /api/seckill/"+sku+"/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\n"+
			"Connection: close\r\nContent-Length: 0\r\n\r\n")
		return reasonOrStatus(resp)
	}
	invented := make(chan string)
	go func() { invented <- order("invented") }()
	<-stock.waiting
	if got := order("known"); got != "200" {
		t.Errorf("an order beside one for an invented SKU: %s, want 200", got)
	}
	close(stock.read)
	if got := <-invented; got != "unknown_sku" {
		t.Errorf("the one for an invented SKU: %s, want unknown_sku", got)
	}
}

func TestStockCheck_KnowsTheUserAndRejectsADuplicate(t *testing.T) {
	to := &recorder{}
	o := options(to)
	stock := &userStock{stockMap: &stockMap{closed: map[string]reject.Reason{}}, bought: "7"}
	o.Stock = stock
	o.Routes = append([]Route{
		{Name: "no user", Match: "POST /without-user/{sku}", Gate: route.Check, SKU: "$path_sku"},
	}, o.Routes...)
	addr, _ := gateway(t, o)
	for _, c := range []struct {
		target string
		status int
	}{
		{"/api/seckill/1001/order HTTP/1.1\r\nCookie: uid=7", 409},
		{"/api/seckill/1001/order HTTP/1.1\r\nCookie: uid=8", 200},
		{"/without-user/1001 HTTP/1.1\r\nCookie: uid=7", 200}, // the route names no user
	} {
		resp, body := talk(t, addr, "POST "+c.target+"\r\nHost: shop\r\nContent-Length: 2\r\n\r\nhi")
		if resp.StatusCode != c.status || c.status == 409 && resp.Header.Get("X-Sluice-Reason") != "duplicate" {
			t.Errorf("%s: %d %s", c.target, resp.StatusCode, body)
		}
	}
	if n := len(to.all()); n != 2 {
		t.Errorf("%d requests reached the upstream, want 2", n)
	}
	stock.mu.Lock()
	defer stock.mu.Unlock()
	if want := []string{"7", "8", ""}; !slices.Equal(stock.users, want) {
		t.Errorf("the stock saw users %q, want %q", stock.users, want)
	}
	if stock.left != 2 {
		t.Errorf("%d left, want 2: a duplicate never entered", stock.left)
	}
}
