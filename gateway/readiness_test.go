package gateway

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/stockgate"
	"sluice/stockgate/sale"
)

// Before Redis has answered its clock is not known: no difference is told.
func TestReadiness_ClockOfARedisThatHasNotAnsweredIsNotTold(t *testing.T) {
	schedule, err := sale.New(sale.Options{Now: func() int64 { return time.Now().UnixNano() }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &Gateway{redis: &stockgate.Redis{}, schedule: schedule}
	if says, health := g.clockCheck(); says != "sales begin and end by this machine's clock" || health != admin.Healthy {
		t.Errorf("%v: %s", health, says)
	}
}

// While no route reserves, a ledger that is gone rejects no order, and no command makes it again.
func TestReadiness_LedgerCountsWhileARouteReserves(t *testing.T) {
	t.Parallel()
	g, file := steer(t)
	sku := "1001"
	g.Orders().lost.Store(&sku)
	if !g.Status().Degraded {
		t.Fatalf("%+v: want that the ledger of %s is told to be gone", g.Status().Checks, sku)
	}
	*file = strings.Replace(steered, `"reserve"`, `"limit"`, 1)
	if _, err := g.controller.Reload(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	ready := httptest.NewRecorder()
	g.ops.ServeHTTP(ready, httptest.NewRequest("GET", "/readyz", nil))
	if text := ready.Body.String(); g.Status().Degraded || ready.Code != 200 || strings.Contains(text, "ledger") {
		t.Errorf("%+v\n%s", g.Status().Checks, text)
	}
}
