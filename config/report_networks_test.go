package config

import (
	"strings"
	"testing"
)

func FuzzNetworks(f *testing.F) {
	f.Add("192.0.2.7\n198.51.100.9/24 # x\n2001:db8::/32\n::ffff:192.0.2.1/97\nfe80::1%eth0\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, bad := parseNetworks(text)
		if bad.number > 0 && len(all) > 0 {
			t.Errorf("a list with a wrong line is read in part: %v", all)
		}
		for _, p := range all {
			if !p.IsValid() || p.Masked() != p || p.Addr().Zone() != "" {
				t.Errorf("%v is no network", p)
			}
			if !strings.Contains(text, "/") && !p.IsSingleIP() {
				t.Errorf("%v is more than an address", p)
			}
		}
	})
}
