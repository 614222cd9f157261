package ledger

import (
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// numbers are a SKU's as an audit read them.
type numbers struct{ total, held, sold float64 }

// numbersOf are r in numbers; ok is false where one of them is none.
func numbersOf(r *Inspection) (n numbers, ok bool) {
	for text, to := range map[*string]*float64{&r.Total: &n.total, &r.Held: &n.held, &r.Sold: &n.sold} {
		v, err := strconv.ParseInt(*text, 10, 64)
		if err != nil {
			return numbers{}, false
		}
		*to = float64(v)
	}
	return n, true
}

// collectNumbers tells the numbers of at most Named ledgers, the first by name, and those of the rest together. No
// client can make a ledger, so that no label comes from a request.
func (a *auditor) collectNumbers(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	all := maps.Clone(a.numbers)
	a.mu.Unlock()
	var rest numbers
	for i, sku := range slices.Sorted(maps.Keys(all)) {
		n := all[sku]
		if i < a.o.MetricSKUs {
			n.emit(ch, sku)
			continue
		}
		rest = numbers{rest.total + n.total, rest.held + n.held, rest.sold + n.sold}
	}
	if len(all) > a.o.MetricSKUs {
		rest.emit(ch, "_other")
	}
}

// numberDescs describe the metrics of ledgers, which come and go.
func numberDescs() []*prometheus.Desc {
	of := func(name, what string) *prometheus.Desc {
		return prometheus.NewDesc(name, "Units of a ledger "+what+", as of its last audit.", []string{"sku"}, nil)
	}
	return []*prometheus.Desc{
		of("sluice_stock_total", "for sale in all"), of("sluice_stock_held", "that are held and not decided"),
		of("sluice_stock_sold", "that are sold"), of("sluice_stock_free", "that can be reserved"),
	}
}

func (n numbers) emit(ch chan<- prometheus.Metric, sku string) {
	descs := numberDescs()
	for i, v := range [...]float64{n.total, n.held, n.sold, n.total - n.held - n.sold} {
		ch <- prometheus.MustNewConstMetric(descs[i], prometheus.GaugeValue, v, sku)
	}
}
