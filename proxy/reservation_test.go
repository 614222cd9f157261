package proxy

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/proxy/auth"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/stockgate/ledger"
)

// fakeOrders are orders that the test decides: what it is asked and told is kept.
type fakeOrders struct {
	mu       sync.Mutex
	answer   Reservation
	decided  bool // memory alone decides
	lookUp   bool // a look-up decides
	orders   []string
	outcomes []metrics.OrderOutcome
}

func (f *fakeOrders) Decided(int64, ledger.Order) (Reservation, bool) {
	if f.lookUp {
		return Reservation{LookUp: true}, false
	}
	return f.answer, f.decided
}

func (f *fakeOrders) LookUp(int64, ledger.Order) (Reservation, bool) { return f.answer, f.lookUp }

func (f *fakeOrders) Reserve(_ int64, o ledger.Order) Reservation {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := string(o.SKU) + " " + string(o.User) + " " + string(o.Key) + " " + string(rune('0'+o.Quantity))
	f.orders = append(f.orders, text)
	return f.answer
}

func (f *fakeOrders) Settle(o ledger.Order, serial string, outcome metrics.OrderOutcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if string(o.SKU) != "1001" || serial != "s-1" {
		panic("settled " + string(o.SKU) + " " + serial)
	}
	f.outcomes = append(f.outcomes, outcome)
}

func (f *fakeOrders) State(_ int64, sku, serial []byte) (OrderState, reject.Reason) {
	if string(serial) != "s-1" {
		return OrderState{}, reject.Admitted
	}
	return OrderState{SKU: "1001", State: ledger.StatusHeld, Deadline: 4_102_444_800_123}, reject.Admitted
}

func (f *fakeOrders) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.orders...)
}

func (f *fakeOrders) settled() []metrics.OrderOutcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]metrics.OrderOutcome(nil), f.outcomes...)
}

// reserving are options with a route that reserves units of stock.
func reserving(to Upstream) (Options, *fakeOrders) {
	o := options(to)
	f := &fakeOrders{answer: Reservation{Serial: "s-1", Deadline: 4_102_444_800_123}}
	o.Orders = f
	o.Routes = []Route{
		{Name: "order", Match: "POST /api/seckill/{sku}/order", Gate: route.Reserve, SKU: "$path_sku",
			User: "$cookie_uid", Quantity: "$arg_qty"},
		{Name: "rest", Match: "/", Gate: route.Pass},
	}
	o.MaxQuantity, o.Outcomes = 3, OutcomeRules{ConfirmOn: []string{"2xx"}, ReleaseOn: []string{"4xx", "302"}}
	o.Responses.Answers[reject.ConfirmedClass] = reject.Answer{Status: 200}
	return o, f
}

// An order that was placed and refunded later is not told that it was not placed.
func TestReservation_RefundedOrderWasPlaced(t *testing.T) {
	for refunded, want := range map[bool]string{true: "It was placed, and cancelled later.", false: "placed no order"} {
		o, ledger := reserving(&recorder{})
		ledger.answer.Reason, ledger.answer.Refunded, ledger.lookUp = reject.Released, refunded, true
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		resp, text := handleOneWith(t, p, strings.Replace(buying, "Cookie", "Accept-Language: en\r\nCookie", 1))
		if resp.Header.Get("X-Sluice-Reason") != "released" || !strings.Contains(text, want) {
			t.Errorf("refunded %v: %s", refunded, text)
		}
	}
}

const buying = "POST /api/seckill/1001/order?qty=2 HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\n" +
	"Idempotency-Key: mine\r\nContent-Length: 2\r\n\r\nhi"

// A shopper of a sold-out SKU hears so although every slot of the concurrency limit is taken.
func TestReservation_LookUpNeedsNoSlot(t *testing.T) {
	o, ledger := reserving(&recorder{})
	ledger.lookUp, ledger.answer = true, Reservation{Reason: reject.SoldOut}
	o.Concurrency = fullQueue{}
	addr, _ := gateway(t, o)
	if resp, body := talk(t, addr, buying); resp.StatusCode != 409 || !strings.Contains(body, "sold_out") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if asked := ledger.asked(); len(asked) != 0 {
		t.Errorf("units were asked for: %v", asked)
	}
}

func TestReservation_UpstreamIsToldWhichOrderItGets(t *testing.T) {
	to := &recorder{}
	o, ledger := reserving(to)
	addr, _ := gateway(t, o)
	forged := strings.Replace(buying, "Idempotency-Key",
		"Sluice-Quantity: 9\r\nSluice-Signature: x\r\nIdempotency-Key", 1)
	if resp, body := talk(t, addr, forged); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if asked := ledger.asked(); len(asked) != 1 || asked[0] != "1001 7 mine 2" {
		t.Errorf("asked for %q", asked)
	}
	got := to.all()
	want := "Idempotency-Key: s-1\r\nSluice-Sku: 1001\r\nSluice-Quantity: 2\r\nSluice-Deadline: 4102444800123\r\n"
	if len(got) != 1 || !strings.Contains(got[0], want) || strings.Contains(got[0], "mine") ||
		strings.Count(got[0], "Sluice-") != 3 {
		t.Errorf("the upstream saw %q, want %q in it", got, want)
	}
	if f := ledger.settled(); len(f) != 1 || f[0] != metrics.OrderConfirmed {
		t.Errorf("settled %v", f)
	}
}

func TestReservation_WhatTheUpstreamIsToldIsSigned(t *testing.T) {
	to := &recorder{}
	o, _ := reserving(to)
	o.SigningKey = []byte("0123456789abcdef")
	addr, _ := gateway(t, o)
	talk(t, addr, buying)
	s, err := auth.NewSigner(o.SigningKey)
	if err != nil {
		t.Fatal(err)
	}
	want := "Sluice-Signature: " + string(s.Append(nil, auth.SignedOrder{
		Method: []byte("POST"), Target: []byte("/api/seckill/1001/order?qty=2"), Serial: "s-1", SKU: []byte("1001"),
		Quantity: 2, Deadline: 4_102_444_800_123,
	})) + "\r\n"
	if got := to.all(); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("the upstream saw %q, want %q in it", got, want)
	}
}

// Outcomes of Orders that leave open whether an earlier request has placed this very order, or another: the client must
// not read that its order was not placed.
var ordersThatMayExist = []reject.Reason{
	reject.Confirmed, reject.InProgress, reject.Duplicate, reject.KeyReused, reject.StockError, reject.Concurrency,
	reject.Paused, reject.Ended,
}

func TestReservation_OrderWithoutOneIsNeitherSentNorSettled(t *testing.T) {
	for reason, status := range map[reject.Reason]int{
		reject.SoldOut: 409, reject.Confirmed: 200, reject.InProgress: 409, reject.Duplicate: 409,
		reject.KeyReused: 422, reject.Released: 409, reject.NotStarted: 403, reject.Ended: 403, reject.Paused: 503,
		reject.UnknownSKU: 404, reject.StockError: 503, reject.Concurrency: 429,
	} {
		for _, decided := range []bool{true, false} {
			to := &recorder{}
			o, ledger := reserving(to)
			ledger.decided, ledger.answer.Reason = decided, reason
			resp, body, _ := handleOne(t, o, buying)
			if resp.StatusCode != status || resp.Header.Get("X-Sluice-Reason") != reason.String() ||
				!strings.Contains(body, reason.String()) {
				t.Errorf("%v: %d %s", reason, resp.StatusCode, body)
			}
			if len(to.all()) > 0 || len(ledger.settled()) > 0 || len(ledger.asked()) > 0 == decided {
				t.Errorf("%v: sent %q, settled %v, asked %v", reason, to.all(), ledger.settled(), ledger.asked())
			}
			denies := strings.Contains(body, "placed no order")
			if denies == slices.Contains(ordersThatMayExist, reason) {
				t.Errorf("%v: says that there is no order: %v: %s", reason, denies, body)
			}
		}
	}
}

func TestReservation_OrderThatMakesNoSenseIsABadRequest(t *testing.T) {
	for _, tt := range []struct{ name, part, by, reason string }{
		{"no quantity", "?qty=2", "", "bad_request"},
		{"zero", "qty=2", "qty=0", "bad_request"},
		{"negative", "qty=2", "qty=-1", "bad_request"},
		{"fraction", "qty=2", "qty=1.5", "bad_request"},
		{"leading zero", "qty=2", "qty=02", "bad_request"},
		{"plus", "qty=2", "qty=%2B2", "bad_request"},
		{"over max_per_user", "qty=2", "qty=4", "bad_request"},
		{"huge", "qty=2", "qty=99999999999999999999", "bad_request"},
		{"empty key", "mine", "", "bad_request"},
		{"long key", "mine", strings.Repeat("k", 129), "bad_request"},
		{"key with a space", "mine", "my own", "bad_request"},
		{"dots for a key", "mine", "..", "bad_request"},
		{"two keys", "Idempotency-Key: mine", "Idempotency-Key: mine\r\nIdempotency-Key: yours", "ambiguous"},
		{"two quantities", "qty=2", "qty=2&qty=1", "ambiguous"},
	} {
		to := &recorder{}
		o, ledger := reserving(to)
		resp, body, _ := handleOne(t, o, strings.Replace(buying, tt.part, tt.by, 1))
		if resp.StatusCode != 400 || resp.Header.Get("X-Sluice-Reason") != tt.reason {
			t.Errorf("%s: %d %s", tt.name, resp.StatusCode, body)
		}
		if len(ledger.asked()) > 0 || len(to.all()) > 0 {
			t.Errorf("%s: asked for %q, the upstream saw %q", tt.name, ledger.asked(), to.all())
		}
	}
}

func TestReservation_EarlyClientIsToldWhenToComeBack(t *testing.T) {
	for wait, want := range map[time.Duration]string{1500 * time.Millisecond: "2", time.Hour: "60", 0: ""} {
		o, ledger := reserving(&recorder{})
		ledger.decided, ledger.answer = true, Reservation{Reason: reject.NotStarted, Wait: wait}
		if resp, body, _ := handleOne(t, o, buying); resp.Header.Get("Retry-After") != want {
			t.Errorf("%v: Retry-After %q, want %q: %s", wait, resp.Header.Get("Retry-After"), want, body)
		}
	}
}
