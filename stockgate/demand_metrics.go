package stockgate

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	requestsDesc = prometheus.NewDesc("sluice_sku_requests_total",
		"Requests for a SKU on routes that check or reserve stock, by what became of them; SKUs that are not named are "+
			"_other.", []string{"sku", "result"}, nil)
	leftDesc = prometheus.NewDesc("sluice_sku_stock_left",
		"Units that the shop's own keys have left, where the shop or its script takes the units.", []string{"sku"}, nil)
	readingsDesc = prometheus.NewDesc("sluice_sku_stock_readings_total",
		"Readings of the shop's own keys for requests, one for each SKU in a round trip.", []string{"sku"}, nil)
	hotDesc = prometheus.NewDesc("sluice_hot_sku_requests",
		"Recent requests for the most wanted SKUs, at most 10, halved each minute.", []string{"sku"}, nil)
)

// Describe implements prometheus.Collector.
func (w *Watch) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, leftDesc, readingsDesc, hotDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (w *Watch) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, n, labels...)
	}
	for _, one := range w.o.Counters.SKUCounts() {
		sku := one.SKU
		if sku == "" {
			sku = "_other"
		}
		send(requestsDesc, prometheus.CounterValue, float64(one.Forwarded), sku, "forwarded")
		send(requestsDesc, prometheus.CounterValue, float64(one.Rejected), sku, "rejected")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, sku := range w.named {
		if units, ok := w.left[sku]; ok {
			send(leftDesc, prometheus.GaugeValue, float64(units), sku)
		}
	}
	for _, one := range w.hot {
		send(hotDesc, prometheus.GaugeValue, float64(one.Requests), one.SKU)
	}
	if !w.reads {
		return
	}
	for _, sku := range slices.Sorted(maps.Keys(w.readings)) {
		send(readingsDesc, prometheus.CounterValue, float64(w.readings[sku].all), sku)
	}
	send(readingsDesc, prometheus.CounterValue, float64(w.others), "_other")
}
