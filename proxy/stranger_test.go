package proxy

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
)

func TestUnnamedProxyInFrontIsTold(t *testing.T) {
	for _, tt := range []struct {
		name      string
		addresses int
		named     bool
		want      int
	}{
		{"one proxy", 1, true, 1},
		{"three proxies", 3, true, 1},
		{"many shoppers", 100, true, 0},
		{"one shopper", 1, false, 0},
	} {
		var out bytes.Buffer
		var s strangers
		for i := range 4 * strangerTotal {
			peer := netip.AddrFrom4([4]byte{10, 0, 0, byte(i % tt.addresses)})
			s.note(int64(i), peer, tt.named, slog.New(slog.NewTextHandler(&out, nil)), "X-Forwarded-For")
		}
		if got := strings.Count(out.String(), "trusted_proxies"); got != tt.want {
			t.Errorf("%s: said %d times: %s", tt.name, got, &out)
		}
	}
}
