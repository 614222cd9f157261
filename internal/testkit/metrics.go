package testkit

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// registryOf holds what is collected against what was described: a series that came twice, or not as it was described,
// is an error.
func registryOf(of []prometheus.Collector) prometheus.Gatherer {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(of...)
	return registry
}

// Series is what Prometheus would read, as "name label label" with the values of labels in the order of their names;
// of a histogram it is how many samples there are.
func Series(t testing.TB, of ...prometheus.Collector) map[string]float64 {
	t.Helper()
	families, err := registryOf(of).Gather()
	Check(t, err)
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// Scrape is the text that Prometheus would read, in which its linter finds nothing.
func Scrape(t testing.TB, of ...prometheus.Collector) string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registryOf(of), promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
	if answer.Code != 200 {
		t.Fatalf("scrape: %s", answer.Body)
	}
	text := answer.Body.String()
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	return text
}
