package metrics

import (
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/upstream"
)

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
	got := testkit.Series(t, c)
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
