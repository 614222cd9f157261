package proxy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/proxy/metrics"
)

func TestTopKeys_AreThoseRejectedMost(t *testing.T) {
	ask, p, _ := trustedGateway(t, func(o *Options) {
		o.Deny = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:bad::/48")}
		o.Rates = []Rate{keyedRate("per-ip", "$remote_addr", 1), keyedRate("per-user", "$cookie_uid", 1),
			keyedRate("per-item", "$remote_addr$arg_q", 1)}
		for i := range o.Rates {
			o.Rates[i].IPv4Prefix = 24
		}
	})
	for range 5 {
		ask("2001:db8:bad:1::5", "GET /page")
		ask("2001:db8:bad:1::6", "GET /page") // of the same network
	}
	for range 7 {
		ask(clientIP, "GET /search/") // the first is admitted
	}
	for range 4 {
		ask("192.0.2.1", "GET /search/?q=tea\r\nCookie: uid=secret\r\n")
	}
	ask("198.51.100.1", "GET /page")
	got := p.Counters().TopKeys(100, p.Now())
	for i := range got {
		if got[i].Limit == "per-user" {
			if !strings.HasPrefix(got[i].Key, "#") || strings.Contains(got[i].Key, "secret") {
				t.Errorf("a cookie is shown as %q", got[i].Key)
			}
			got[i].Key = "a hash"
		}
	}
	want := []metrics.TopKey{
		{Limit: "denied_ip", Key: "2001:db8:bad:1::/64", Rejected: 10}, {Limit: "per-ip", Key: "203.0.113.0/24", Rejected: 6},
		{Limit: "per-ip", Key: "192.0.2.0/24", Rejected: 3}, {Limit: "per-item", Key: "192.0.2.0/24 tea", Rejected: 3},
		{Limit: "per-user", Key: "a hash", Rejected: 3}, {Limit: "denied_ip", Key: "198.51.100.1", Rejected: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("top keys (-want +got):\n%s", diff)
	}
}
