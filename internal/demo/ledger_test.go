package demo

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/load"
)

// reserving is a gate with a ledger, as small as one can be.
type reserving struct {
	mu     sync.Mutex
	ledger load.Ledger
	states map[string]string // by serial
}

func holdingBack(units int64) *reserving {
	return &reserving{ledger: load.Ledger{Total: units, Free: units}, states: map[string]string{}}
}

func (g *reserving) read() load.Ledger {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ledger
}

// take gives the state of a serial's order, "" when a unit was taken for it now.
func (g *reserving) take(serial string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.states[serial] != "":
		return g.states[serial]
	case g.ledger.Free == 0:
		return "sold_out"
	}
	g.states[serial] = "held"
	g.ledger.Free--
	g.ledger.Held++
	return ""
}

// settle reads the shop's status.
func (g *reserving) settle(serial string, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case status < 300:
		g.states[serial] = "sold"
		g.ledger.Held--
		g.ledger.Sold++
	case status < 500:
		g.states[serial] = "released"
		g.ledger.Held--
		g.ledger.Free++
		g.ledger.Released++
	}
}

// resolve asks the shop about everything that is held.
func (g *reserving) resolve(t *testing.T, shop *load.Shop) {
	g.mu.Lock()
	var held []string
	for serial, state := range g.states {
		if state == "held" {
			held = append(held, serial)
		}
	}
	g.mu.Unlock()
	for _, serial := range held {
		g.settle(serial, bySerial(t, shop, serial))
	}
}

// front is the gate's front; lost tells whether an answer of the shop never comes back.
func (g *reserving) front(t *testing.T, shop *load.Shop, lost func(user string) bool) (addr string) {
	return inFront(t, shop, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		serial := r.Header.Get("Idempotency-Key")
		switch g.take(serial) {
		case "held":
			reject(w, http.StatusConflict, "in_progress")
			return
		case "sold":
			reject(w, http.StatusOK, "confirmed")
			return
		case "released", "sold_out":
			reject(w, http.StatusConflict, "sold_out")
			return
		}
		r.Header.Set("Sluice-Sku", "1001")
		r.Header.Set("Sluice-Quantity", "1")
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		if lost(who(r)) {
			reject(w, http.StatusGatewayTimeout, "upstream_timeout")
			return
		}
		g.settle(serial, answer.Code)
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

func never(string) bool { return false }

// sellReserved lets a crowd at a gate with a ledger.
func sellReserved(t *testing.T, shop *load.Shop, g *reserving, front string, shoppers int,
	patience time.Duration) Report {
	t.Helper()
	c := Crowd{Front: front, Shoppers: shoppers, Spread: 50 * time.Millisecond, GiveUpAfter: patience,
		Ledger: g.read}
	r, err := c.Run(t.Context(), shop, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLedger_ReservedSaleBalances(t *testing.T) {
	shop, g := reservedShop(t, 5), holdingBack(5)
	r := sellReserved(t, shop, g, g.front(t, shop, never), 18, long) // none of them has a mishap
	if r.Err() != nil || r.Shop.Orders != 5 || *r.Ledger != (load.Ledger{Total: 5, Sold: 5}) {
		t.Errorf("%v; orders %d, ledger %+v", r.Err(), r.Shop.Orders, *r.Ledger)
	}
	if !strings.Contains(r.String(), "The ledger balances: 5 sold, 0 free") {
		t.Errorf("the report does not say that the ledger balances:\n%s", r)
	}
}

func TestLedger_DeclinedOrderIsSoldToAnotherShopper(t *testing.T) {
	shop, g := reservedShop(t, 40), holdingBack(40)
	r := sellReserved(t, shop, g, g.front(t, shop, never), 40, long)
	if r.Err() != nil || r.Shop.Orders != 39 || r.Home[load.Rejected] != 1 ||
		*r.Ledger != (load.Ledger{Total: 40, Sold: 39, Free: 1, Released: 1}) {
		t.Errorf("%v; orders %d, turned away %d, ledger %+v; want 39, 1 and 1 free", r.Err(), r.Shop.Orders,
			r.Home[load.Rejected], *r.Ledger)
	}
}

// A shopper who is told that the outcome is unknown presses again, which is no second order.
func TestShopper_UnknownOutcomeIsNoSecondOrder(t *testing.T) {
	shop, g := reservedShop(t, 10), holdingBack(10)
	front := g.front(t, shop, func(string) bool { return true })
	stop, resolved := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(resolved)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if g.read().Held == 10 && shop.Totals().Orders == 10 { // everybody waits, and the shop has heard of all
					g.resolve(t, shop)
				}
			case <-stop:
				return
			}
		}
	}()
	r := sellReserved(t, shop, g, front, 10, long)
	close(stop)
	<-resolved
	if r.Err() != nil || load.Sum(r.Unknown) != 10 || r.Home[load.HadOne] != 10 || r.Requests < 20 ||
		r.Shop.Orders != 10 || r.Shop.Again != 0 {
		t.Errorf("%v; unknown %d, had one %d, asked %d, orders %d, again %d; want 10 each, asked 20 times and more, none "+
			"again",
			r.Err(), load.Sum(r.Unknown), r.Home[load.HadOne], r.Requests, r.Shop.Orders, r.Shop.Again)
	}
}

func TestLedger_SaleEndsWhenNothingIsHeldAnyMore(t *testing.T) {
	shop := reservedShop(t, 0)
	var mu sync.Mutex
	looks := 0
	decidedLate := func() load.Ledger {
		mu.Lock()
		defer mu.Unlock()
		if looks++; looks < 5 {
			return load.Ledger{Held: 1, Free: -1}
		}
		return load.Ledger{}
	}
	front := inFront(t, shop, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		reject(w, http.StatusConflict, "sold_out")
	})
	r, err := Crowd{Front: front, Shoppers: 1, Spread: time.Millisecond, GiveUpAfter: long,
		Ledger: decidedLate}.Run(t.Context(), shop, io.Discard)
	if err != nil || r.Err() != nil || r.Ledger.Held != 0 {
		t.Errorf("%v, %v, ledger %+v", err, r.Err(), r.Ledger)
	}
}

func TestLedger_UnitThatStaysHeldIsNamed(t *testing.T) {
	shop, g := reservedShop(t, 3), holdingBack(3)
	front := g.front(t, shop, func(string) bool { return true }) // and no resolver runs
	r := sellReserved(t, shop, g, front, 3, 2*time.Second)
	if r.Err() == nil || !strings.Contains(r.Err().Error(), "units are still held") || r.Home[load.GaveUp] != 3 {
		t.Errorf("gave up %d, %v", r.Home[load.GaveUp], r.Err())
	}
	if strings.Contains(r.String(), "ledger balances") || !strings.Contains(r.String(), "BROKEN: balance") {
		t.Errorf("the report says otherwise:\n%s", r)
	}
}

func TestLedger_InterruptedSaleMayLeaveUnitsHeld(t *testing.T) {
	shop, g := reservedShop(t, 3), holdingBack(3)
	ctx, interrupt := context.WithCancel(t.Context())
	front := g.front(t, shop, func(string) bool { interrupt(); return true })
	r, err := Crowd{Front: front, Shoppers: 3, Spread: time.Millisecond, GiveUpAfter: long,
		Ledger: g.read}.Run(ctx, shop, io.Discard)
	if err != nil || !r.Interrupted || r.Err() != nil {
		t.Errorf("%v, interrupted %v, %v", err, r.Interrupted, r.Err())
	}
}

func TestLedger_OrderThatIsSentTwiceIsNamed(t *testing.T) {
	shop, g := reservedShop(t, 5), holdingBack(5)
	inner := g.front(t, shop, never)
	front := inFront(t, shop, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if g.read().Sold < 5 { // a gate that hedges
			twin := r.Clone(r.Context())
			twin.Header.Set("Sluice-Sku", "1001")
			twin.Header.Set("Sluice-Quantity", "1")
			next.ServeHTTP(discard{http.Header{}}, twin)
		}
		through(t, w, r, inner)
	})
	r := sellReserved(t, shop, g, front, 5, long)
	if r.Shop.Again == 0 || r.Err() == nil || !strings.Contains(r.Err().Error(), "sent twice") {
		t.Errorf("again %d, %v", r.Shop.Again, r.Err())
	}
}

// through hands a request on to another front.
func through(t *testing.T, w http.ResponseWriter, r *http.Request, addr string) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", addr, ""
	resp, err := client().Do(out)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// balanced is a report of a reserved sale in which everything adds up.
func balanced() Report {
	r := sound()
	r.Shop.Units, r.Shop.Orders, r.Home[load.Bought], r.Home[load.GaveUp] = 110, 104, 103, 4
	r.Ledger = &load.Ledger{Total: 110, Free: 6, Sold: 104, Released: 2, Resolved: 3}
	return r
}

func TestLedger_BooksThatDoNotBalanceSaySo(t *testing.T) {
	if err := balanced().Err(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Report){
		"105 sold in the ledger, but the shop knows 104 orders: some are lost": func(r *Report) {
			r.Ledger.Sold,
				r.Ledger.Free = 105, 5
		},
		"the shop knows 105 orders, but the ledger 104 sold and 0 held": func(r *Report) { r.Shop.Orders = 105 },
		"1 units are still held":                    func(r *Report) { r.Ledger.Held, r.Ledger.Free = 1, 5 },
		"7 free, but total 110 - held 0 - sold 104": func(r *Report) { r.Ledger.Free = 7 },
		"111 units in all, the shop 110":            func(r *Report) { r.Ledger.Total, r.Ledger.Free = 111, 7 },
		"sent twice: 1":                             func(r *Report) { r.Shop.Again = 1 },
	} {
		r := balanced()
		spoil(&r)
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
		if want != "sent twice: 1" && strings.Contains(r.String(), "The ledger balances") {
			t.Errorf("%s, and yet the books balance", want)
		}
	}
}

func TestLedger_InterruptedBooksTellOnlyWhatIsCertain(t *testing.T) {
	r := balanced()
	r.Interrupted, r.Ledger.Held, r.Ledger.Free = true, 2, 4
	r.Shop.Orders = 105
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	r.Shop.Orders = 103
	if err := r.Err(); err == nil {
		t.Error("a lost order is not named")
	}
}
