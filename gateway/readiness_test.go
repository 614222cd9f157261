package gateway

import (
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
