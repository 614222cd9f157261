package gateway

import (
	"testing"
	"time"

	"sluice/stockgate/sale"
)

// A reload renames a sale. Until the room of the former name has ended, its tick must not say that the sale has no
// hours.
func TestSaleFollower_SaleThatIsNotConfiguredAnyMoreIsAsItWas(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	one := sale.Sale{Name: "rush", SKUs: []string{"1001"}, Starts: now.Add(-time.Hour), Ends: now.Add(time.Hour)}
	schedule, err := sale.New(sale.Options{Now: func() int64 { return now.UnixNano() }}, []sale.Sale{one})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(schedule.Close)
	f := &saleFollower{roomSources: roomSources{Schedule: schedule}, name: "rush"}
	before := f.sale()
	one.Name = "renamed"
	schedule.Use([]sale.Sale{one})
	if got := f.sale(); got != before || got.Starts != one.Starts.UnixMilli() || got.Ended {
		t.Errorf("%+v, was %+v", got, before)
	}
}
