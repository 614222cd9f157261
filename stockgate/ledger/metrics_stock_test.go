package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"sluice/internal/testkit"
)

func TestMetricsStock_NumbersOfAFewLedgersAreNamedAndTheRestAddedUp(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		o := testOptions()
		o.MetricSKUs = 2
		d := opened(t, o, s, nil)
		for i := range 5 {
			name := fmt.Sprint("sku ", i)
			testkit.Must[Stock](t)(s.SetTotal(t.Context(), name, int64(10+i), 0))
			d.Track(name)
		}
		d.Track("nothing")
		codes := make([]Code, 1)
		testkit.Must[StockVersion](t)(s.Reserve(t.Context(), "sku 1", 0, 1, 1<<40,
			[]Item{{Serial: "a", User: "ann", Quantity: 3}}, codes))
		testkit.Must[StockVersion](t)(s.Finish(t.Context(), "sku 1", 1, 1<<40, Confirm,
			[]Item{{Serial: "a"}}, make([]Done, 1)))
		testkit.Must[StockVersion](t)(s.Reserve(t.Context(), "sku 4", 0, 1, 1<<40,
			[]Item{{Serial: "a", User: "ann", Quantity: 2}}, codes))
		d.upkeep.audits.check(t.Context(), d.ledgers())
		r := prometheus.NewRegistry()
		r.MustRegister(d)
		var got []string
		for _, family := range testkit.Must[[]*dto.MetricFamily](t)(r.Gather()) {
			if !strings.HasPrefix(family.GetName(), "sluice_stock_") {
				continue
			}
			for _, m := range family.Metric {
				got = append(
					got,
					fmt.Sprintf(
						"%s %s %v",
						strings.TrimPrefix(family.GetName(), "sluice_stock_"),
						m.Label[0].GetValue(),
						m.Gauge.GetValue(),
					),
				)
			}
		}
		want := []string{
			"free _other 37", "free sku 0 10", "free sku 1 8", "held _other 2", "held sku 0 0", "held sku 1 0",
			"sold _other 0", "sold sku 0 0", "sold sku 1 3", "total _other 39", "total sku 0 10", "total sku 1 11",
		}
		if err := differ("metrics", fmt.Sprint(got), fmt.Sprint(want)); err != nil {
			t.Error(err)
		}
	})
}
