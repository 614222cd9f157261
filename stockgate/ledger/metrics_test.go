package ledger

import (
	"strings"
	"testing"

	"sluice/internal/testkit"
)

func TestMetrics_PassTheLinterAndNameOnlyNamedSKUs(t *testing.T) {
	s := fakeStoreOf(testSKU, 2)
	s.put("invented", 2, 0)
	o := testOptions()
	d := opened(t, o, s, nil)
	d.Track(testSKU)
	o.Named = []string{testSKU} // by a reload
	d.Use(o, nil)
	for _, of := range []string{testSKU, "invented"} {
		for _, user := range []string{"1", "2", "3"} {
			d.Reserve(0, Order{SKU: []byte(of), User: []byte(user), Quantity: 1})
		}
	}
	text := testkit.Scrape(t, d)
	for _, line := range []string{
		`sluice_reservations_total{event="held",sku="1001"} 2`,
		`sluice_reservations_total{event="held",sku="_other"} 2`,
		`sluice_reservations_total{event="sold_out",sku="1001"} 0`, // from memory
		`sluice_ledger_call_orders_count{operation="reserve"} 4`,
		`sluice_ledger_call_orders_bucket{operation="reserve",le="1"} 4`,
		`sluice_reservations_unknown{sku="_other"} 0`,
		`sluice_settle_queue_length 0`,
		`sluice_resolver_outcomes_total{outcome="confirmed"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, "invented") {
		t.Error("a label came from a request")
	}
}
