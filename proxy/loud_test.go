package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheLoudestAreThoseRefusedMost(t *testing.T) {
	ask, p, _ := trustedGate(t, func(o *Options) {
		o.Deny = prefixes("198.51.100.0/24", "2001:db8:bad::/48")
		o.Rates = []KeyedRate{keyed("per-ip", "$remote_addr", 1), keyed("per-user", "$cookie_uid", 1), keyed("per-item", "$remote_addr$arg_q", 1)}
		for i := range o.Rates {
			o.Rates[i].IPv4Prefix = 24
		}
	})
	for range 5 {
		ask("2001:db8:bad:1::5", "GET /page")
		ask("2001:db8:bad:1::6", "GET /page") // of the same network
	}
	for range 7 {
		ask(someone, "GET /search/") // the first is admitted
	}
	for range 4 {
		ask("192.0.2.1", "GET /search/?q=tea\r\nCookie: uid=secret\r\n")
	}
	ask("198.51.100.1", "GET /page")
	got := p.Loudest(100)
	for i := range got {
		if got[i].Limit == "per-user" {
			if !strings.HasPrefix(got[i].Key, "#") || strings.Contains(got[i].Key, "secret") {
				t.Errorf("a cookie is shown as %q", got[i].Key)
			}
			got[i].Key = "a hash"
		}
	}
	want := []Loud{
		{"denied_ip", "2001:db8:bad:1::/64", 10}, {"per-ip", "203.0.113.0/24", 6},
		{"per-ip", "192.0.2.0/24", 3}, {"per-item", "192.0.2.0/24 tea", 3}, {"per-user", "a hash", 3},
		{"denied_ip", "198.51.100.1", 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loudest (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:2], p.Loudest(2)); diff != "" {
		t.Errorf("the two loudest (-want +got):\n%s", diff)
	}
	if len(p.Loudest(0)) != 0 || len(p.Loudest(-1)) != 0 {
		t.Error("none asked for, and some told")
	}
}
