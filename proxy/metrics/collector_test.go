package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/proxy/reject"
	"sluice/upstream"
)

// gather returns the counters that Prometheus would read, as "name label label" with the labels sorted by their names.
// The pedantic registry reports a series that is collected twice or not described.
func gather(t *testing.T, collectors ...prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			series[name] = m.GetCounter().GetValue()
			if m.GetHistogram() != nil {
				series[name] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return series
}

func TestCounters_CollectShowsWhatWasCounted(t *testing.T) {
	c := NewCounters(2)
	for range 2 {
		s := c.Shard()
		r := c.Route("order").At(s)
		r.Rejected(reject.SoldOut)
		r.Observed(reject.Window)
		r.Status(409)
		r.Took(upstream.TimedOut, time.Second)
		c.Rate("per-ip").At(s).Rejected()
		s.Decided(time.Microsecond)
		s.Panic()
		s.Detail(reject.NoCause)
		s.Detail(reject.UserMissing)
	}
	c.Route("idle")
	c.Rate("per-ip").At(c.Shard()).Observed()
	got := gather(t, c)
	for series, want := range map[string]float64{
		"sluice_http_requests_total 409 order":                       2,
		"sluice_rejected_requests_total sold_out order":              2,
		"sluice_rejected_requests_total sold_out idle":               0,
		"sluice_observed_rejections_total window order":              2,
		"sluice_http_request_duration_seconds timeout order":         2,
		"sluice_http_request_duration_seconds answered order":        0,
		"sluice_decision_duration_seconds":                           2,
		"sluice_panics_total":                                        2,
		"sluice_rate_rejected_requests_total per-ip":                 2,
		"sluice_rate_observed_rejections_total per-ip":               1,
		"sluice_rejection_details_total user_missing":                2,
		"sluice_rejection_details_total " + reject.Cause(1).String(): 0,
	} {
		if n, ok := got[series]; !ok || n != want {
			t.Errorf("%s: %v %v, want %v", series, n, ok, want)
		}
	}
	if _, ok := got["sluice_rejection_details_total "]; ok {
		t.Error("rejections without a cause are shown")
	}
}
