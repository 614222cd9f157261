package proxy

import (
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/proxy/metrics"
)

// A server that answers 408 gave up waiting, and does not say what it did.
func TestOutcomeRules_RequestTimeoutDecidesOnlyWhereItIsListed(t *testing.T) {
	for _, c := range []struct {
		release []string
		status  int
		want    metrics.OrderOutcome
	}{
		{[]string{"4xx"}, 408, metrics.OrderUnknown}, {[]string{"4xx"}, 409, metrics.OrderRejected},
		{[]string{"4xx", "408"}, 408, metrics.OrderRejected}, {[]string{"409"}, 408, metrics.OrderUnknown},
	} {
		var resp fasthttp.Response
		resp.SetStatusCode(c.status)
		rules := OutcomeRules{ConfirmOn: []string{"2xx"}, ReleaseOn: c.release}
		if got := rules.Outcome(&resp); got != c.want {
			t.Errorf("release_on %q, status %d: %v, want %v", c.release, c.status, got, c.want)
		}
	}
}
