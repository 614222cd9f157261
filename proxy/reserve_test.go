package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// clerk is a ledger of one line: what it says is set by the test, and what it is told is kept.
type clerk struct {
	mu     sync.Mutex
	says   Taken
	closed bool
	orders []string
	fates  []Fate
}

func (c *clerk) Closed(int64, Order) (Taken, bool) { return c.says, c.closed }

func (c *clerk) Take(_ int64, o Order) Taken {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, string(o.SKU)+" "+string(o.User)+" "+string(o.Key)+" "+string(rune('0'+o.Quantity)))
	return c.says
}

func (c *clerk) Settle(sku []byte, serial string, f Fate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if string(sku) != "1001" || serial != "s-1" {
		panic("settled " + string(sku) + " " + serial)
	}
	c.fates = append(c.fates, f)
}

func (c *clerk) State(_ int64, sku, serial []byte) (OrderState, Reason) {
	if string(serial) != "s-1" {
		return OrderState{State: "none"}, Admitted
	}
	return OrderState{SKU: "1001", State: "held", Deadline: 1_700_000_000_123}, Admitted
}

func (c *clerk) settled() []Fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Fate(nil), c.fates...)
}

func reserving(shop Shop) (Options, *clerk) {
	o := options(shop)
	c := &clerk{says: Taken{Serial: "s-1", Deadline: 1_700_000_000_123}}
	o.Orders = c
	o.Routes = []Route{
		{Name: "order", Match: "POST /api/seckill/{sku}/order", Gate: Reserve, SKU: "$path_sku", User: "$cookie_uid", Quantity: "$arg_qty"},
		{Name: "rest", Match: "/", Gate: Pass},
	}
	o.Settling = Settling{PerUser: 3, ConfirmOn: []string{"2xx"}, ReleaseOn: []string{"4xx", "302"}}
	o.Responses.Answers[ConfirmedClass] = Answer{Status: 200}
	return o, c
}

const buying = "POST /api/seckill/1001/order?qty=2 HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nIdempotency-Key: mine\r\nContent-Length: 2\r\n\r\nhi"

func TestShopIsToldWhichOrderItGets(t *testing.T) {
	shop := &seen{}
	o, c := reserving(shop)
	addr, _ := gate(t, o)
	forged := strings.Replace(buying, "Idempotency-Key", "Sluice-Quantity: 9\r\nSluice-Signature: x\r\nIdempotency-Key", 1)
	if resp, body := talk(t, addr, forged); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if len(c.orders) != 1 || c.orders[0] != "1001 7 mine 2" {
		t.Errorf("asked for %q", c.orders)
	}
	got := shop.all()
	want := "Idempotency-Key: s-1\r\nSluice-Sku: 1001\r\nSluice-Quantity: 2\r\nSluice-Deadline: 1700000000123\r\n"
	if len(got) != 1 || !strings.Contains(got[0], want) || strings.Contains(got[0], "mine") || strings.Count(got[0], "Sluice-") != 3 {
		t.Errorf("the shop saw %q, want %q in it", got, want)
	}
	if f := c.settled(); len(f) != 1 || f[0] != Placed {
		t.Errorf("settled %v", f)
	}
}

func TestWhatTheShopIsToldIsSigned(t *testing.T) {
	shop := &seen{}
	o, _ := reserving(shop)
	o.Settling.Key = []byte("0123456789abcdef")
	addr, _ := gate(t, o)
	talk(t, addr, buying)
	s, err := newSigner(o.Settling.Key)
	if err != nil {
		t.Fatal(err)
	}
	want := "Sluice-Signature: " + string(s.append(nil, signed{
		method: []byte("POST"), target: []byte("/api/seckill/1001/order?qty=2"), serial: "s-1", sku: []byte("1001"), quantity: 2, deadline: 1_700_000_000_123,
	})) + "\r\n"
	if got := shop.all(); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("the shop saw %q, want %q in it", got, want)
	}
}

func TestWhatTheShopSaidSettlesTheOrder(t *testing.T) {
	status := func(code int) shopFunc {
		return func(_ *Outgoing, resp *fasthttp.Response) Outcome { resp.SetStatusCode(code); return Answered }
	}
	word := func(code int, words ...string) shopFunc {
		return func(_ *Outgoing, resp *fasthttp.Response) Outcome {
			resp.SetStatusCode(code)
			for _, w := range words {
				resp.Header.Add("sluice-order", w)
			}
			return Answered
		}
	}
	json := func(code int, body string) shopFunc {
		return func(_ *Outgoing, resp *fasthttp.Response) Outcome {
			resp.SetStatusCode(code)
			resp.SetBodyString(body)
			return Answered
		}
	}
	outcome := func(o Outcome) shopFunc { return func(*Outgoing, *fasthttp.Response) Outcome { return o } }
	byJSON := &JSONValue{Keys: []string{"data", "code"}, Values: []string{"0", `"ok"`}}
	for name, tt := range map[string]struct {
		shop   shopFunc
		json   *JSONValue
		status int
		fate   Fate
	}{
		"200":               {status(200), nil, 200, Placed},
		"201":               {status(201), nil, 201, Placed},
		"302":               {status(302), nil, 302, Dropped},
		"303":               {status(303), nil, 303, Unsure},
		"404":               {status(404), nil, 404, Dropped},
		"500":               {status(500), nil, 500, Unsure},
		"never sent":        {outcome(NotSent), nil, 503, Dropped},
		"timeout":           {outcome(TimedOut), nil, 504, Unsure},
		"cut":               {outcome(Broken), nil, 502, Unsure},
		"500 but confirmed": {word(500, "confirmed"), nil, 500, Placed},
		"200 but released":  {word(200, "released"), nil, 200, Dropped},
		"200 but sold out":  {word(200, "sold-out"), nil, 200, Dropped},
		"unknown word":      {word(200, "maybe"), nil, 200, Unsure},
		"two words":         {word(200, "confirmed", "released"), nil, 200, Unsure},
		"JSON 0":            {json(200, `{"data":{"code":0}}`), byJSON, 200, Placed},
		"JSON ok":           {json(200, `{"data":{"code":"ok"}}`), byJSON, 200, Placed},
		"JSON refusal":      {json(200, `{"data":{"code":500500}}`), byJSON, 200, Dropped},
		"JSON text":         {json(200, `{"data":{"code":"0"}}`), byJSON, 200, Dropped},
		"JSON elsewhere":    {json(200, `{"code":0}`), byJSON, 200, Unsure},
		"JSON twice":        {json(200, `{"data":{"code":1,"code":0}}`), byJSON, 200, Unsure},
		"no JSON":           {json(200, `<html>`), byJSON, 200, Unsure},
		"JSON, but 500":     {json(500, `{"data":{"code":0}}`), byJSON, 500, Unsure},
		"JSON, but 400":     {json(400, `{"data":{"code":0}}`), byJSON, 400, Dropped},
	} {
		t.Run(name, func(t *testing.T) {
			o, c := reserving(tt.shop)
			o.Settling.ConfirmJSON = tt.json
			addr, _ := gate(t, o)
			resp, body := talk(t, addr, buying)
			if resp.StatusCode != tt.status || resp.Header.Get("Sluice-Order") != "" {
				t.Errorf("answer %v %s", resp, body)
			}
			if f := c.settled(); len(f) != 1 || f[0] != tt.fate {
				t.Errorf("settled %v, want %v once", f, tt.fate)
			}
			if unknown := tt.fate == Unsure && tt.status >= 502; unknown != strings.Contains(resp.Header.Get("Link"), "/.sluice/orders/s-1?sku=1001") {
				t.Errorf("Link: %q", resp.Header.Get("Link"))
			}
		})
	}
}

func TestOrderThatIsNotHeldIsNeitherSentNorSettled(t *testing.T) {
	for _, closed := range []bool{true, false} {
		for reason, status := range map[Reason]int{
			SoldOut: 409, Confirmed: 200, InProgress: 409, Duplicate: 409, KeyReused: 422, Released: 409,
			NotStarted: 403, Ended: 403, Paused: 503, UnknownSKU: 404, StockError: 503, Concurrency: 429,
		} {
			shop := &seen{}
			o, c := reserving(shop)
			c.closed, c.says.Reason = closed, reason
			addr, _ := gate(t, o)
			resp, body := talk(t, addr, buying)
			if resp.StatusCode != status || resp.Header.Get("X-Sluice-Reason") != reason.String() || !strings.Contains(body, reason.String()) {
				t.Errorf("%v: %d %s", reason, resp.StatusCode, body)
			}
			if len(shop.all()) > 0 || len(c.settled()) > 0 || len(c.orders) > 0 == closed {
				t.Errorf("%v: shop %q, settled %v, asked %v", reason, shop.all(), c.settled(), c.orders)
			}
			silent := reason == Confirmed || reason == InProgress || reason == Duplicate || // there may be another order, or this one
				reason == KeyReused || reason == StockError || reason == Concurrency
			if placed := strings.Contains(body, "order was not placed"); placed == silent {
				t.Errorf("%v tells a lie: %s", reason, body)
			}
		}
	}
}

func TestOrderThatCannotBeMeantIsABadRequest(t *testing.T) {
	for name, raw := range map[string]string{
		"no quantity":      strings.Replace(buying, "?qty=2", "", 1),
		"zero":             strings.Replace(buying, "qty=2", "qty=0", 1),
		"negative":         strings.Replace(buying, "qty=2", "qty=-1", 1),
		"fraction":         strings.Replace(buying, "qty=2", "qty=1.5", 1),
		"leading zero":     strings.Replace(buying, "qty=2", "qty=02", 1),
		"plus":             strings.Replace(buying, "qty=2", "qty=%2B2", 1),
		"over per_user":    strings.Replace(buying, "qty=2", "qty=4", 1),
		"huge":             strings.Replace(buying, "qty=2", "qty=99999999999999999999", 1),
		"empty key":        strings.Replace(buying, "mine", "", 1),
		"long key":         strings.Replace(buying, "mine", strings.Repeat("k", 129), 1),
		"key with a space": strings.Replace(buying, "mine", "my own", 1),
		"dots for a key":   strings.Replace(buying, "mine", "..", 1),
	} {
		shop := &seen{}
		o, c := reserving(shop)
		addr, _ := gate(t, o)
		resp, body := talk(t, addr, raw)
		if resp.StatusCode != 400 || resp.Header.Get("X-Sluice-Reason") != "bad_request" || len(c.orders) > 0 || len(shop.all()) > 0 {
			t.Errorf("%s: %d %s, asked %v", name, resp.StatusCode, body, c.orders)
		}
	}
	for name, raw := range map[string]string{
		"two keys":       strings.Replace(buying, "Idempotency-Key: mine", "Idempotency-Key: mine\r\nIdempotency-Key: yours", 1),
		"two quantities": strings.Replace(buying, "qty=2", "qty=2&qty=1", 1),
	} {
		o, c := reserving(&seen{})
		addr, _ := gate(t, o)
		if resp, body := talk(t, addr, raw); resp.StatusCode != 400 || len(c.orders) > 0 {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

func TestFaultAfterTheOrderIsHeldLeavesItUnsure(t *testing.T) {
	o, c := reserving(shopFunc(func(*Outgoing, *fasthttp.Response) Outcome { panic("on purpose") }))
	addr, _ := gate(t, o)
	talk(t, addr, buying)
	if f := c.settled(); len(f) != 1 || f[0] != Unsure {
		t.Errorf("settled %v", f)
	}
}

func TestEarlyShopperIsToldWhenToComeBack(t *testing.T) {
	for wait, want := range map[time.Duration]string{1500 * time.Millisecond: "2", time.Hour: "60", 0: ""} {
		o, c := reserving(&seen{})
		c.closed, c.says = true, Taken{Reason: NotStarted, Wait: wait}
		addr, _ := gate(t, o)
		if resp, body := talk(t, addr, buying); resp.Header.Get("Retry-After") != want {
			t.Errorf("%v: Retry-After %q, want %q: %s", wait, resp.Header.Get("Retry-After"), want, body)
		}
	}
}

func TestStateOfAnOrderIsToldToWhoeverKnowsItsSerial(t *testing.T) {
	shop := &seen{}
	o, _ := reserving(shop)
	addr, _ := gate(t, o)
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/.sluice/orders/s-1?sku=1001":      {200, `{"serial":"s-1","sku":"1001","state":"held","deadline":"2023-11-14T22:13:20.123Z"}`},
		"/.sluice/orders/s-1":               {200, `"state":"held"`},
		"/.sluice/orders/other":             {404, `{"serial":"other","state":"none"}`},
		"/.sluice/orders/":                  {400, "bad_request"},
		"/.sluice/orders/a%20b":             {400, "bad_request"},
		"/.sluice/orders/s-1?sku=%7b1%7d":   {400, "bad_request"},
		"/.sluice/orders/s-1?sku=1&sku=2":   {400, "bad_request"},
		"/.sluice/orders/%2e%2e?sku=1001":   {400, "bad_request"},
		"/.sluice/orders/%22quoted%22?sku=": {404, `\"quoted\"`},
	} {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want.status || !strings.Contains(string(body), want.text) || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s, want %d %s", path, resp.StatusCode, body, want.status, want.text)
		}
	}
	if got := shop.all(); len(got) > 0 {
		t.Errorf("the shop saw %q", got)
	}
}
